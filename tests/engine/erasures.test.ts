/** Erasures in the background: progress by step, one at a time per organization, interrupted by a stop. */
import { expect, test } from 'bun:test'
import { openDatabaseAdmin, openStore } from '../../db/open.ts'
import type { Store } from '../../db/contract/store.ts'
import { startLog, type LogFields } from '../../server/log.ts'
import { makeErasures } from '../../server/operations/retention/erasures.ts'
import { makeAudit, makeBatch, makeOrg, noon } from '../store/make.ts'
import { tempDir } from '../support/temp-dir.ts'
import { until } from '../support/until.ts'
import { event } from './subject.ts'

const clock = { now: () => noon }
const actor = { orgId: 'org_a', actor: 'user:usr_1' }
const subjectScope = { kind: 'subject', value: 'ann@example.com' } as const
const events = 20_000 // every second one is theirs: several steps

/** A store with two organizations and the same events in both, whose erasures continue only when released. */
async function gated(folder: string) {
  const store = await openStore({ folder, now: noon })
  for (const id of ['org_a', 'org_b']) {
    await store.orgs.create({ org: makeOrg({ id, slug: id }), audit: makeAudit(id) })
    for (let from = 0; from < events; from += 1_000) {
      const batch = Array.from({ length: 1_000 }, (_, n) => {
        const subject = n % 2 === 0 ? subjectScope.value : null
        return { ...event(from + n, noon - from - n), subject }
      })
      await store.events.append(makeBatch(id, batch))
    }
  }
  const gate = Promise.withResolvers<void>()
  const erase: Store['events']['erase'] = async (command) => {
    if (command.cursor !== null) await gate.promise
    return store.events.erase(command)
  }
  const errors: [string, LogFields | undefined][] = []
  const log = {
    ...startLog({ level: 'error', clock }),
    error: (name: string, fields?: LogFields) => void errors.push([name, fields]),
  }
  const erasures = makeErasures({
    store: { ...store, events: { ...store.events, erase } },
    clock,
    log,
    node: 'one',
  })
  return { store, erasures, errors, open: gate.resolve }
}

const totalOf = async (store: Store, orgId: string): Promise<number> =>
  (await store.events.overview(orgId)).total

test('one at a time per organization, with progress by step, independent of others', async () => {
  using dir = tempDir('erasures')
  const { store, erasures, open } = await gated(dir.path)
  expect(await erasures.view('org_a')).toMatchObject({ running: null, last: null })
  await erasures.start(actor, subjectScope)
  const { running, last } = await erasures.view('org_a')
  expect([running?.by, last]).toEqual(['subject', null])
  expect(running!.events).toBeGreaterThan(0)
  expect(running!.events).toBeLessThan(events / 2)
  expect(await totalOf(store, 'org_a')).toBe(events - running!.events)
  const rows = await store.audit.rows({ orgId: 'org_a', afterSeq: 0, limit: 10 })
  expect(rows.map(({ action }) => action)).toContain('events.erased')

  const second = erasures.start(actor, { kind: 'session', value: 's' })
  expect(await second.catch((error: { code: string }) => error.code)).toBe('conflict')
  await erasures.start({ ...actor, orgId: 'org_b' }, { kind: 'subject', value: 'nobody' })
  open()
  await until(async () => (await erasures.view('org_a')).running === null)
  expect((await erasures.view('org_a')).last).toMatchObject({ erased: { events: events / 2 }, problem: null })
  await until(async () => (await erasures.view('org_b')).running === null)
  expect((await erasures.view('org_b')).last).toMatchObject({ erased: { events: 0 }, problem: null })
  await erasures.start(actor, subjectScope)
  await until(async () => (await erasures.view('org_a')).running === null)
  expect((await erasures.view('org_a')).last).toMatchObject({ erased: { events: 0 } })
  await store.close()
}, 60_000)

test('a stop ends it at its next step and is reported; a second run completes it', async () => {
  using dir = tempDir('erasures')
  const { store, erasures, errors, open } = await gated(dir.path)
  await erasures.start(actor, subjectScope)
  const stopped = erasures.stop()
  open()
  await stopped
  const { running, last } = await erasures.view('org_a')
  expect([running, last?.erased, last?.problem]).toEqual([null, null, expect.stringContaining('stopped')])
  expect(errors).toEqual([
    ['erasure_interrupted', expect.objectContaining({ orgId: 'org_a', by: 'subject' })],
  ])
  const remainingCount = await totalOf(store, 'org_a')
  expect(remainingCount).toBeGreaterThan(events / 2)
  expect(remainingCount).toBe(events - (errors[0]![1]!.events as number))
  await store.close()
  expect((await openDatabaseAdmin(dir.path).verifyEvents()).faults).toEqual([])

  const again = await openStore({ folder: dir.path, now: noon })
  const next = makeErasures({ store: again, clock, log: startLog({ level: 'error', clock }), node: 'one' })
  await next.start(actor, subjectScope)
  await until(async () => (await next.view('org_a')).running === null)
  expect((await next.view('org_a')).last).toMatchObject({
    erased: { events: remainingCount - events / 2 },
    problem: null,
  })
  expect(await totalOf(again, 'org_a')).toBe(events / 2)
  await again.close()
}, 60_000)

test('after a crash the next process reports it, and erases again', async () => {
  using dir = tempDir('erasures')
  const { store, erasures, open } = await gated(dir.path)
  await erasures.start(actor, subjectScope) // and never continues
  const log = startLog({ level: 'error', clock })
  const next = makeErasures({ store, clock, log, node: 'one' })
  const { running, last } = await next.view('org_a')
  expect([running, last]).toMatchObject([
    null,
    { by: 'subject', erased: null, problem: 'one stopped before it finished: erase again' },
  ])
  await next.start(actor, subjectScope)
  await until(async () => (await next.view('org_a')).running === null)
  expect((await next.view('org_a')).last).toMatchObject({ problem: null })
  expect(await totalOf(store, 'org_a')).toBe(events / 2)
  open()
  await erasures.stop()
  await store.close()
}, 60_000)

test('the caller gets the error of the first step, and no erasure is running', async () => {
  using dir = tempDir('erasures')
  const store = await openStore({ folder: dir.path, now: noon })
  const erase = () => Promise.reject(new Error('the disk is broken'))
  const failing = { ...store, events: { ...store.events, erase } }
  const log = startLog({ level: 'error', clock })
  const erasures = makeErasures({ store: failing, clock, log, node: 'one' })
  expect(await erasures.start(actor, subjectScope).catch(String)).toContain('the disk is broken')
  expect(await erasures.view('org_a')).toMatchObject({ running: null, last: null })
  await store.close()
})
