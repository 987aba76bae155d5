/** Copies of a whole database, both ways: nothing is lost or served by mistake, and a copy continues. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { cpSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openCopy, openDatabaseAdmin, openReadStore, openStore, reopenCopied } from '../../db/open.ts'
import type { CopyRequest, CopyStep } from '../../db/contract/copy.ts'
import { database, startPostgres } from '../support/postgres.ts'
import { bunProgram, run } from '../support/process.ts'
import { openConnection } from '../../db/postgres/connection/connection.ts'
import { schema, writerSchema } from '../../db/postgres/migrations/migrations.ts'
import { until } from '../support/until.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'
import { appendMany, emptyTables, makeEverything, orgIds } from './copy-data.ts'
import { contentOf } from './fixture.ts'
import { makeAudit, makeBatch, makeEvent, noon } from './make.ts'
import { failure } from './subject.ts'

setDefaultTimeout(120_000)

let temp: TempDir
let sourcePath: Promise<string>
beforeAll(() => {
  temp = tempDir('copy')
  sourcePath = (async () => {
    const folder = temp.join('made')
    await makeEverything(folder)
    return folder
  })()
})
afterAll(() => temp.remove())

async function source(name: string): Promise<string> {
  cpSync(await sourcePath, temp.join(name), { recursive: true })
  return temp.join(name)
}

const request = (from: string, to: string, finish = false): CopyRequest => ({
  from: { location: from, name: from },
  to: { location: to, name: to },
  now: noon,
  finish,
})

/** Runs a copy to its last step. `onStep` sees every step. */
async function copy(
  command: CopyRequest,
  onStep: (step: CopyStep) => Promise<void> | void = () => undefined,
): Promise<CopyStep> {
  const opened = await openCopy(command)
  try {
    for (;;) {
      const step = await opened.step()
      await onStep(step)
      if (step.phase === 'done' || step.phase === 'caught_up') return step
    }
  } finally {
    await opened.close()
  }
}

const sharedOf = (location: string) =>
  location.startsWith('postgres') ? { url: location, node: 'test' } : null
const openAt = (location: string) => openStore({ folder: location, now: noon, shared: sharedOf(location) })

/** Verifies, and sends every event again: stored and erased ones are known, expired and removed ones are not. */
async function expectWhole(location: string, content: Awaited<ReturnType<typeof contentOf>>): Promise<void> {
  const admin = openDatabaseAdmin(location)
  expect((await admin.verifyEvents()).faults).toEqual([])
  expect((await admin.verifyAudit()).faults).toEqual([])
  const store = await openAt(location)
  expect(await contentOf(store)).toEqual(content)
  const resent = Array.from({ length: 1_000 }, (_, index) => makeEvent(`evt_${index}`))
  const large = await store.events.append(makeBatch('org_large', resent))
  expect([large.accepted, large.deduped]).toEqual([600, 400])
  expect(await store.events.byId({ orgId: 'org_large', id: 'evt_650' })).toBeNull()
  const small = await store.events.append(makeBatch('org_small', resent.slice(0, 700)))
  expect([small.accepted, small.deduped]).toEqual([18, 682])
  expect((await store.events.overview('org_large')).total).toBe(content.metrics['org_large']! + 600)
  expect(content.events['org_large']!.total).toBe(3_000 - 600 - 48) // expired, erased
  await store.close()
}

test('everything is copied to a shared database and back, and both know every id', async () => {
  const folder = await source('there')
  expect(emptyTables(folder).filter((name) => !/^event_(id|path|segment|posting)/.test(name))).toEqual([])
  const store = await openStore({ folder, now: noon })
  const content = await contentOf(store)
  await store.close()
  const { url } = await database()
  const copyResult = await copy(request(folder, url))
  expect(copyResult.verdict).toMatchObject({ equal: true, faults: [] })
  const back = temp.join('back')
  const again = await copy(request(url, back))
  expect(again.verdict).toMatchObject({ equal: true, faults: [] })
  // The same rows with the same digests; the ids of erased events are no longer there to be equal in another form.
  const rowsOf = ({ verdict }: CopyStep, side: 'source' | 'target') =>
    verdict!.checks.map((check) => ({ name: check.name, ...check[side] }))
  expect(rowsOf(again, 'target')).toEqual(rowsOf(copyResult, 'source'))
  expect(again.verdict!.checks.length).toBeGreaterThan(40)
  const { rows } = copyResult.verdict!.checks.find(({ name }) => name === 'events')!.source
  expect(rows).toBeGreaterThan(2_900)
  const headsOf = (folderPath: string) =>
    JSON.parse(readFileSync(`${folderPath}/audit-heads`, 'utf8')) as object
  expect(headsOf(back)).toEqual(headsOf(folder))
  const checkpointsOf = (folderPath: string) => readFileSync(`${folderPath}/audit-checkpoints`, 'utf8')
  expect(checkpointsOf(back)).toBe(checkpointsOf(folder))
  await reopenCopied(url)
  await expectWhole(url, content)
  await expectWhole(back, content)
})

/** Appends one event at a time until it fails or is stopped. Returns the ids that were acknowledged. */
function appending(store: Awaited<ReturnType<typeof openStore>>, orgId: string) {
  const acknowledged: string[] = []
  let isStopped = false
  const run = async (): Promise<unknown> => {
    for (let number = 0; !isStopped; number++) {
      const id = `live_${number}`
      try {
        await store.events.append(makeBatch(orgId, [makeEvent(id, { sessionId: `s${number % 9}` })]))
        acknowledged.push(id)
        await Bun.sleep(3)
        if (number % 50 === 7)
          await store.orgs.rename({ orgId: 'org_single', name: id, audit: makeAudit('org_single') })
      } catch (error) {
        return error
      }
    }
    return null
  }
  const ended = run()
  return { acknowledged, stop: async () => ((isStopped = true), ended), ended }
}

async function liveCopy(from: string, to: string): Promise<void> {
  const store = await openAt(from)
  const node = { name: 'one', version: '0.0.0', role: 'all' as const }
  const { startedAtMs } = await store.nodes.register({ node, now: noon })
  const beat = () =>
    store.nodes.heartbeat({ name: node.name, report: null, now: noon }).catch(() => undefined)
  const beats = setInterval(() => void beat(), 1_000) // as a node does every 5 s
  const orgId = sharedOf(from) === null ? 'org_live' : 'org_back'
  const live = appending(store, orgId)
  const first = await copy(request(from, to))
  expect(first.phase).toBe('caught_up')
  expect(first.usedBy).toMatch(/in use by|uses the database/)
  expect((await failure(openAt(to))).message).toMatch(/unfinished copy of .*: run the same/)
  expect((await failure(openReadStore(to, sharedOf(to)))).message).toMatch(/unfinished copy/)
  let waited = 0
  const last = await copy(request(from, to, true), async ({ phase, usedBy }) => {
    if (phase !== 'wait') return
    expect(usedBy).not.toBeNull()
    if (++waited !== 7) return
    clearInterval(beats)
    await live.stop()
    await store.nodes.leave({ name: node.name, startedAtMs })
    await store.close()
  })
  expect(waited).toBeGreaterThanOrEqual(7)
  expect(last.verdict).toMatchObject({ equal: true, faults: [] })
  expect(live.acknowledged.length).toBeGreaterThan(5)
  const copied = await openAt(to)
  const resent = live.acknowledged.map((id) => makeEvent(id))
  for (let offset = 0; offset < resent.length; offset += 1_000) {
    const part = resent.slice(offset, offset + 1_000)
    expect(await copied.events.append(makeBatch(orgId, part))).toMatchObject({ deduped: part.length })
  }
  expect((await copied.events.overview(orgId)).total).toBe(live.acknowledged.length)
  await copied.close()
  expect((await openDatabaseAdmin(to).verifyEvents()).faults).toEqual([])
  expect((await failure(openAt(from))).message).toMatch(/was copied to .*reopen/)
  const source = await openReadStore(from, sharedOf(from)) // it may still be read
  expect((await source.events.overview(orgId)).total).toBe(live.acknowledged.length)
  await source.close()
}

test('beside a server that stores and changes: it catches up, waits and loses nothing', async () => {
  const folder = await source('live')
  const { url } = await database()
  await liveCopy(folder, url)
  await liveCopy(url, temp.join('live-back'))
})

test('a node that was suspended cannot write to a source that was copied', async () => {
  const { url } = await database()
  const store = await openAt(url)
  await appendMany(store, orgIds[0]!, { first: 0, count: 10 })
  const { verdict } = await copy(request(url, temp.join('suspended')))
  expect(verdict).toMatchObject({ equal: true })
  const append = store.events.append(makeBatch(orgIds[0]!, [makeEvent('late')]))
  expect((await failure(append)).kind).toBe('not_writable')
  expect((await failure(store.audit.append(makeAudit('org_a')))).kind).toBe('not_writable')
  expect(await reopenCopied(url)).toBe(true)
  expect(await store.events.append(makeBatch(orgIds[0]!, [makeEvent('later')]))).toMatchObject({
    accepted: 1,
  })
  await store.close()
  expect(await reopenCopied(url)).toBe(false)
})

test('a copy waits for a write that has begun, whichever tables that write takes next', async () => {
  const { url, name, cluster } = await database()
  const store = await openAt(url)
  await appendMany(store, orgIds[0]!, { first: 0, count: 10 })
  await store.close()
  const writer = openConnection({ url, node: 'test', schema, statementTimeoutMs: 60_000 })
  writer.run(`BEGIN; SELECT begin_write(${writerSchema}); UPDATE store_lock SET name = name`)
  const copied = copy(request(url, temp.join('waited')))
  const waiting = `SELECT count(*) FROM pg_stat_activity
    WHERE datname = '${name}' AND application_name LIKE '%copy%' AND wait_event_type = 'Lock'`
  await until(async () => (await cluster.sql(waiting)) === '1')
  writer.run('UPDATE access_source SET lines = lines; COMMIT')
  writer.close()
  expect((await copied).verdict).toMatchObject({ equal: true })
})

test('a target with other data is refused, and so is a source that was copied', async () => {
  const folder = await source('first')
  const other = temp.join('other')
  const store = await openStore({ folder: other, now: noon })
  await store.audit.append(makeAudit('org_a'))
  await store.close()
  const { url } = await database()
  expect((await failure(openCopy(request(folder, other)))).message).toMatch(/other data: name an empty/)
  expect((await failure(openCopy(request(temp.join('none'), url)))).kind).toBe('not_found')
  await (await openCopy(request(folder, url))).close() // unfinished
  expect((await failure(openCopy(request(other, url)))).message).toMatch(
    /unfinished copy of another database/,
  )
  expect((await failure(openCopy(request(url, temp.join('new'))))).message).toMatch(/source cannot be copied/)
  expect((await copy(request(folder, url))).verdict).toMatchObject({ equal: true })
  expect((await failure(openCopy(request(folder, url)))).message).toMatch(/was copied to/)
  expect((await failure(openCopy(request(folder, other)))).message).toMatch(/was copied to/)
  expect(await reopenCopied(folder)).toBe(true)
  expect((await failure(openCopy(request(folder, url)))).message).toMatch(/already holds a finished copy/)
  await (await openAt(folder)).close()
})

/** Starts a process that copies and is killed after so many steps. */
async function killAt(from: string, to: string, steps: number): Promise<void> {
  const command = bunProgram(join(import.meta.dir, 'copy-child.ts'))
  const child = run([...command, from, to, String(steps)], {
    cwd: temp.path,
    env: { PATH: process.env['PATH'] ?? '' },
  })
  const code = await child.exited
  if (code !== 137) throw new Error(`exit code ${code}\n${child.stderr()}`)
}

test('a copy that was killed continues, both ways, and its target is not served', async () => {
  const folder = await source('killed')
  const { url } = await database()
  const back = temp.join('killed-back')
  for (const [from, to] of [
    [folder, url],
    [url, back],
  ] as const) {
    let slices = 0
    for (const steps of [2, 20]) {
      await killAt(from, to, steps)
      expect((await failure(openAt(to))).message).toMatch(/unfinished copy/)
    }
    const { verdict } = await copy({ ...request(from, to), stepMs: 0 }, () => void slices++)
    expect(verdict).toMatchObject({ equal: true, faults: [] })
    expect(slices).toBeGreaterThan(40)
  }
  expect((await openDatabaseAdmin(back).verifyEvents()).faults).toEqual([])
})

test('killing the database ends the copy, which continues after a restart', async () => {
  const folder = await source('cut')
  const cluster = await startPostgres()
  const opened = await openCopy({ ...request(folder, cluster.url), stepMs: 0 })
  for (let steps = 0; steps < 6; steps++) await opened.step()
  await cluster.kill()
  const cut = async () => {
    for (;;) await opened.step()
  }
  expect((await failure(cut())).kind).toBe('unavailable')
  await opened.close()
  await cluster.restart()
  const { verdict } = await copy(request(folder, cluster.url))
  expect(verdict).toMatchObject({ equal: true, faults: [] })
  await cluster.stop()
})
