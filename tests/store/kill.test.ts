/** kill -9 during appends: acknowledged events are stored, none twice, and the lock is free. */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { openStore } from '../../db/open.ts'
import type { Store } from '../../db/contract/store.ts'
import { bunProgram, run } from '../support/process.ts'
import { tempDir } from '../support/temp-dir.ts'
import { makeBatch, makeEvent, noon } from './make.ts'
import { auditOf, failure } from './subject.ts'

const program = join(import.meta.dir, 'append-without-end.ts')
const rounds = 5
const killedBySignal = 128 + 9

/** Every stored event's id, read by the tail, so that a duplicate would show. */
async function storedIds(store: Store): Promise<string[]> {
  const ids: string[] = []
  let afterSeq = 0
  for (;;) {
    const tail = await store.events.tail({ orgId: 'org_a', filter: {}, afterSeq, limit: 1_000 })
    ids.push(...tail.events.map(({ json }) => (JSON.parse(json) as { id: string }).id))
    if (tail.lastSeq === afterSeq) return ids
    afterSeq = tail.lastSeq
  }
}

test(`${rounds} kills in the middle of appending lose nothing that was acknowledged`, async () => {
  using dir = tempDir()
  const acknowledged = new Set<string>()
  const audited = new Set<string>()
  for (let round = 0; round < rounds; round++) {
    const child = run([...bunProgram(program), dir.path, String(round)], { cwd: dir.path, env: {} })
    // A different moment each round: some sender's n-th acknowledgement.
    const reached = (line: string) => (Number(line.split('-')[2]) >= round * 7 ? line : null)
    await child.line(reached, 20_000)
    if (round === 0) {
      const error = await failure(openStore({ folder: dir.path, now: noon }))
      expect([error.kind, error.message]).toEqual([
        'locked',
        `the data folder is in use by process ${child.pid}`,
      ])
    }
    child.signal('SIGKILL')
    expect(await child.exited).toBe(killedBySignal)
    for (const line of child.stdout().split('\n').slice(0, -1)) {
      const [first = '', ...words] = line.split(' ')
      if (first === 'audit') audited.add(words[0] ?? '')
      else for (const id of [first, ...words]) acknowledged.add(id)
    }
    const store = await openStore({ folder: dir.path, now: noon })
    const stored = await storedIds(store)
    const distinct = new Set(stored)
    expect(distinct.size).toBe(stored.length)
    expect([...acknowledged].filter((id) => !distinct.has(id))).toEqual([])
    expect((await store.events.overview('org_a')).total).toBe(stored.length)
    const entries = new Set((await auditOf(store, 'org_a')).map(({ id }) => id))
    expect([...audited].filter((id) => !entries.has(id))).toEqual([])
    expect((await store.audit.verify([])).faults).toEqual([])
    const again = stored.slice(-1_000).map((id) => makeEvent(id))
    const resent = await store.events.append(makeBatch('org_a', again))
    expect(resent).toMatchObject({ accepted: 0, deduped: again.length })
    await store.close()
  }
  expect(acknowledged.size).toBeGreaterThan(rounds * 20)
}, 90_000)
