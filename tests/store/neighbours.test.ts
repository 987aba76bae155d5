/** One organization's long reads do not delay another's page, even with a single reader. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { openStore } from '../../db/open.ts'
import type { Store } from '../../db/contract/store.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'
import { makeBatch, makeEvent, noon } from './make.ts'

const hostile = 'org_hostile'
const other = 'org_other'
const total = 70_000
let dir: TempDir
let store: Store

beforeAll(async () => {
  dir = tempDir('neighbours')
  store = await openStore({ folder: dir.path, now: noon, readers: 1 })
  for (let from = 0; from < total; from += 1_000) {
    const events = Array.from({ length: 1_000 }, (_, n) =>
      makeEvent(`e${from + n}`, { sessionId: `s${n % 40}`, occurredAtMs: noon + from + n }),
    )
    await store.events.append(makeBatch(hostile, events))
  }
  await store.events.append(makeBatch(other, [makeEvent('mine')]))
}, 60_000)
afterAll(async () => {
  await store.close()
  dir.remove()
})

const anywhere = { orgId: hostile, before: null, ceilingSeq: null }
const filter = { sinceMs: 0, text: 'no event says this' }
const longReads: { [name: string]: () => Promise<unknown> } = {
  'a page of sessions': () =>
    store.sessions.page({ ...anywhere, filter: {}, limit: 50, eventsMax: 10_000, budgetMs: 300 }),
  'a long session': () =>
    store.sessions.story({
      orgId: hostile,
      sessionId: 's1',
      after: null,
      ceilingSeq: null,
      limit: 200,
      eventsMax: 10_000,
    }),
  'a text search': () => store.events.page({ ...anywhere, filter, limit: 50 }),
  'a count': () => store.events.count({ orgId: hostile, filter, afterSeq: 0, ceilingSeq: total }),
  'a re-count': () => store.events.recount({ orgId: hostile, hourStartMs: noon }),
}

for (const [name, ask] of Object.entries(longReads)) {
  test(`${name} does not hold up another organization's page`, async () => {
    const ended: string[] = []
    const long = ask().then(() => ended.push('long'))
    const pages = [1, 2, 3].map(async (n) => {
      const page = await store.events.page({ ...anywhere, orgId: other, filter: {}, limit: 50 })
      expect(page.events.length).toBe(1)
      ended.push(`page ${n}`)
    })
    await Promise.all([long, ...pages])
    expect(ended.indexOf('page 1')).toBe(0)
  })
}
