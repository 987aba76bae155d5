/** Parquet exports and the folder of open files: an independent reader finds what the API and its counts say. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { parquetMetadata, parquetReadObjects } from 'hyparquet'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { makeOpenFiles, type OpenFiles } from '../../server/parquet/open-files.ts'
import type { Manifest } from '../../server/parquet/parquet.ts'
import { event, type TestEvent } from '../support/events.ts'
import { testServer, type TestServer } from '../support/server.ts'
import { hostileTexts } from './parquet-readers.ts'

const parquetType = 'application/vnd.apache.parquet'
const hourMs = 3_600_000
const dayMs = 24 * hourMs
/** The clock of the server only moves forward. */
const noon = Math.ceil(Date.now() / dayMs) * dayMs + 2 * dayMs + 12 * hourMs
const dateOf = (daysAgo: number) => new Date(noon - daysAgo * dayMs).toISOString().slice(0, 10)
const folderOf = (daysAgo: number) => `dt=${dateOf(daysAgo)}`

let server: TestServer
let ingest: string
let secret: string
let files: OpenFiles
let folder: string

/** Five days of events, and hostile texts among them. */
const sentEvents: TestEvent[] = Array.from({ length: 3_000 }, (_, index) =>
  event(`e${index}`, {
    occurredAt: new Date(noon - 5 * dayMs + index * 140_000).toISOString(),
    type: ['tool.executed', 'authz.evaluated', 'agent.detected'][index % 3]!,
    outcome: ['success', 'blocked', 'error', 'success'][index % 4]!,
    tool: index % 9 === 0 ? hostileTexts[(index / 9) % hostileTexts.length]!.slice(0, 200) : 'checkout.pay',
    metadata: {
      subject: `person-${index % 50}`,
      page: index % 7 === 0 ? null : `/p/${index % 11}`,
      n: index,
    },
  }),
)

const quiet = { info() {}, warn() {}, error() {}, debug() {} }

beforeAll(async () => {
  server = await testServer()
  server.clock.move(noon - server.clock.now())
  ingest = await server.key('ingest')
  secret = await server.key('secret')
  await send(sentEvents)
  folder = join(server.dataDir, 'open')
  files = makeOpenFiles({ store: server.store, folder, log: quiet as never })
})
afterAll(() => server[Symbol.asyncDispose]())

async function send(events: TestEvent[]): Promise<void> {
  for (let offset = 0; offset < events.length; offset += 1_000) {
    const body = { events: events.slice(offset, offset + 1_000) }
    expect((await server.call('/v1/sdk/events', { key: ingest, body })).status).toBe(202)
  }
}

const get = (query: string, accept: string) =>
  server.call(`/v1/traces${query}`, { key: secret, headers: { accept } })

interface Row {
  [column: string]: unknown
  event: string
  occurred_at: Date
}

async function rowsOf(file: ArrayBuffer): Promise<Row[]> {
  const compressors = { ZSTD: (bytes: Uint8Array) => Bun.zstdDecompressSync(bytes) }
  return (await parquetReadObjects({ file, compressors })) as Row[]
}

async function lines(query: string): Promise<string[]> {
  const text = await (await get(query, 'application/x-ndjson')).text()
  return text.trimEnd().split('\n').slice(0, -1)
}

function counted(rows: Row[], nameOf: (row: Row) => string): { [name: string]: number } {
  const counts: { [name: string]: number } = {}
  for (const row of rows) counts[nameOf(row)] = (counts[nameOf(row)] ?? 0) + 1
  return counts
}

test('an export has the events of NDJSON, character by character, and the counts of /v1/metrics', async () => {
  const response = await get('', parquetType)
  expect([response.status, response.headers.get('content-type')]).toEqual([200, parquetType])
  expect(response.headers.get('content-disposition')).toContain('.parquet"')
  const rows = await rowsOf(await response.arrayBuffer())
  expect(rows.map((row) => row.event)).toEqual(await lines(''))
  expect(rows.length).toBe(sentEvents.length)
  const metrics = (await (await server.call(`/v1/metrics?since=${dateOf(9)}`, { key: secret })).json()) as {
    byType: object
    byOutcome: object
    byHour: { hour: string; count: number }[]
  }
  expect(counted(rows, (row) => String(row['type']))).toEqual(metrics.byType as never)
  expect(counted(rows, (row) => String(row['outcome']))).toEqual(metrics.byOutcome as never)
  const hourOf = ({ occurred_at: occurredAt }: Row) =>
    new Date(Math.floor(occurredAt.getTime() / hourMs) * hourMs).toISOString()
  const byHour = metrics.byHour.map(({ hour, count }): [string, number] => [
    new Date(hour).toISOString(),
    count,
  ])
  expect(counted(rows, hourOf)).toEqual(Object.fromEntries(byHour))
})

test('filters apply, an empty export is readable, pages are refused, HEAD has no body, the audit trail says so', async () => {
  const blockedRows = await rowsOf(
    await (await get('?type=tool.executed&outcome=blocked', parquetType)).arrayBuffer(),
  )
  expect(blockedRows.map((row) => row.event)).toEqual(await lines('?type=tool.executed&outcome=blocked'))
  const emptyFile = await (await get('?vendor=nobody', parquetType)).arrayBuffer()
  expect([Number(parquetMetadata(emptyFile).num_rows), await rowsOf(emptyFile)]).toEqual([0, []])
  expect((await get('?limit=5', parquetType)).status).toBe(400)
  expect((await get('?raw=true', parquetType)).status).toBe(400)
  const head = await server.call('/v1/traces', {
    method: 'HEAD',
    key: secret,
    headers: { accept: parquetType },
  })
  expect([head.status, await head.text()]).toEqual([200, ''])
  const cookie = await server.signIn('analyst')
  const dashboard = await server.call('/api/export/events?format=parquet', { headers: { cookie } })
  expect((await rowsOf(await dashboard.arrayBuffer())).length).toBe(sentEvents.length)
  expect(dashboard.headers.get('content-disposition')).toEndWith('.parquet"')
  const page = await server.store.audit.list({ orgId: server.org.id, limit: 1, beforeSeq: null })
  expect(page.entries[0]).toMatchObject({ action: 'traces.exported', metadata: { format: 'parquet' } })
})

test('a key can run one Parquet export at a time, and an abandoned one frees its slot', async () => {
  const bothResponses = await Promise.all([get('', parquetType), get('', parquetType)])
  expect(bothResponses.map(({ status }) => status).toSorted()).toEqual([200, 503])
  for (const { body } of bothResponses) await body!.cancel()
  for (let tries = 0; ; tries++) {
    const next = await get('?vendor=nobody', parquetType)
    await next.arrayBuffer()
    if (next.status === 200 || tries === 100) return expect(next.status).toBe(200)
    await Bun.sleep(20)
  }
})

const run = () => files.run(server.clock.now(), new AbortController().signal)
const orgFolder = () => join(folder, server.org.id)
const manifest = () => JSON.parse(readFileSync(join(orgFolder(), 'manifest.json'), 'utf8')) as Manifest
const days = () => readdirSync(orgFolder()).filter((name) => name.startsWith('dt='))

async function written(path: string): Promise<Row[]> {
  return rowsOf(await Bun.file(join(orgFolder(), path)).arrayBuffer())
}

/** The files have exactly the events of their days that the API has. */
async function expectEqual(): Promise<void> {
  const { files: allFiles, rows, lastArrival } = manifest()
  expect(allFiles.map(({ path }) => path.split('/')[0]!)).toEqual(days().toSorted())
  let sum = 0
  for (const file of allFiles) {
    const day = file.path.slice('dt='.length, 'dt=2026-11-01'.length)
    const next = new Date(Date.parse(day) + dayMs).toISOString().slice(0, 10)
    const writtenRows = await written(file.path)
    expect(writtenRows.map((row) => row.event)).toEqual(await lines(`?since=${day}&until=${next}`))
    const bytes = readFileSync(join(orgFolder(), file.path))
    expect([file.rows, file.bytes, file.sha256]).toEqual([
      writtenRows.length,
      bytes.length,
      new Bun.CryptoHasher('sha256').update(bytes).digest('hex'),
    ])
    expect([file.maxTime, file.minTime]).toEqual([
      writtenRows[0]!.occurred_at.toISOString(),
      writtenRows.at(-1)!.occurred_at.toISOString(),
    ])
    sum += writtenRows.length
  }
  expect([rows, lastArrival]).toEqual([sum, await server.store.events.lastSeq(server.org.id)])
}

test('open files: past days only, unchanged ones stay, late events and the next day are added', async () => {
  await run()
  expect(days().toSorted()).toEqual([5, 4, 3, 2, 1].map(folderOf))
  await expectEqual()
  const manifestBefore = readFileSync(join(orgFolder(), 'manifest.json'), 'utf8')
  rmSync(join(orgFolder(), 'manifest.json.tmp'), { force: true })
  await run()
  expect(readFileSync(join(orgFolder(), 'manifest.json'), 'utf8')).toBe(manifestBefore)
  await send([
    event('late', { occurredAt: `${dateOf(4)}T23:59:59.999Z` }),
    event('today', { occurredAt: `${dateOf(0)}T00:00:00Z` }),
  ])
  await run()
  await expectEqual()
  const listHashes = (text: string) => (JSON.parse(text) as Manifest).files.map(({ sha256 }) => sha256)
  expect(
    listHashes(manifestBefore).filter((sha256, index) => manifest().files[index]!.sha256 !== sha256).length,
  ).toBe(1)
  server.clock.move(12 * hourMs + 20 * 60_000) // 00:20: the day has ended, but events may still be on their way
  await run()
  expect(days()).not.toContain(folderOf(0))
  server.clock.move(20 * 60_000)
  await run()
  expect(days()).toContain(folderOf(0))
  await expectEqual()
})

test('open files: an erased subject leaves its days, a day without events is removed', async () => {
  const has = async (subject: string) => {
    for (const { path } of manifest().files)
      if ((await written(path)).some((row) => row['subject'] === subject)) return true
    return false
  }
  expect(await has('person-7')).toBe(true)
  await eraseAll({ orgId: server.org.id, sessionIds: [], subjects: ['person-7'] })
  await run()
  expect(await has('person-7')).toBe(false)
  await expectEqual()
  await send([event('alone', { occurredAt: `${dateOf(40)}T00:00:00Z`, sessionId: 'alone' })])
  await run()
  expect(days()).toContain(folderOf(40))
  await eraseAll({ orgId: server.org.id, sessionIds: ['alone'], subjects: [] })
  await run()
  expect(days()).not.toContain(folderOf(40))
  await expectEqual()
})

async function eraseAll(command: { orgId: string; sessionIds: string[]; subjects: string[] }): Promise<void> {
  let cursor: Awaited<ReturnType<typeof server.store.events.erase>>['next'] = null
  do {
    const step = await server.store.events.erase({ ...command, audit: null, cursor })
    cursor = step.next
  } while (cursor !== null)
}

test('open files: damaged, half-written and foreign ones are repaired, an interrupted run leaves whole files', async () => {
  const [first, second, third] = manifest().files
  writeFileSync(join(orgFolder(), first!.path), 'PAR1')
  rmSync(join(orgFolder(), second!.path))
  writeFileSync(join(orgFolder(), `${third!.path}.tmp`), 'half')
  mkdirSync(join(orgFolder(), 'dt=1999-01-01'))
  mkdirSync(join(folder, 'org_gone'))
  await run()
  await expectEqual()
  expect(existsSync(join(orgFolder(), `${third!.path}.tmp`))).toBe(false)
  expect(readdirSync(folder)).toEqual([server.org.id])
  rmSync(folder, { recursive: true })
  const ending = new AbortController()
  ending.abort(new Error('the server stops'))
  const failed = await files.run(server.clock.now(), ending.signal).catch((error: Error) => error.message)
  expect(failed).toBe('the server stops')
  await run()
  await expectEqual()
})

test('open files: what others put into the folder stays, and another appliance’s files are not written', async () => {
  const ownId = 'ab'.repeat(16)
  const owned = makeOpenFiles({ store: server.store, folder, applianceId: ownId, log: quiet as never })
  await owned.run(server.clock.now(), new AbortController().signal)
  rmSync(join(orgFolder(), 'manifest.json')) // it is written again, with the id
  await owned.run(server.clock.now(), new AbortController().signal)
  expect(manifest()).toMatchObject({ appliance: ownId })
  const texts: { [name: string]: string } = {
    'README.md': 'people',
    'notes/mine.txt': 'people',
    'org_of_others/manifest.json': JSON.stringify({ ...manifest(), org: 'org_of_others', appliance: 'cd' }),
    'org_of_others/dt=2026-01-01/part-0.parquet': 'of another appliance',
    'web/manifest.json': '{"name":"a web app"}',
    'web/dt=2026-01-01/part-0.parquet': 'people',
    [`${server.org.id}/dt=1999-01-01/query.sql`]: 'people',
    [`${server.org.id}/notes.txt`]: 'people',
  }
  for (const [name, text] of Object.entries(texts)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  symlinkSync('/etc', join(folder, 'org_link'))
  const deletedManifest = { ...manifest(), org: 'org_deleted' }
  mkdirSync(join(folder, 'org_deleted', 'dt=2026-01-01'), { recursive: true })
  writeFileSync(join(folder, 'org_deleted', 'manifest.json'), JSON.stringify(deletedManifest))
  writeFileSync(join(folder, 'org_deleted', 'dt=2026-01-01', 'part-0.parquet'), 'a person’s events')
  writeFileSync(join(orgFolder(), 'dt=1999-01-01', 'part-0.parquet'), 'expired')
  await owned.run(server.clock.now(), new AbortController().signal)
  for (const [name, text] of Object.entries(texts))
    expect([name, readFileSync(join(folder, name), 'utf8')]).toEqual([name, text])
  expect(readdirSync(folder).toSorted()).toEqual(
    ['README.md', 'notes', 'org_link', 'org_of_others', 'web', server.org.id].toSorted(),
  )
  expect(readdirSync(join(orgFolder(), 'dt=1999-01-01'))).toEqual(['query.sql'])

  // A copy of the data with the same organization.
  const manifestBefore = readFileSync(join(orgFolder(), 'manifest.json'), 'utf8')
  const warnings: string[] = []
  const log = { ...quiet, warn: (name: string) => void warnings.push(name) }
  const copy = makeOpenFiles({ store: server.store, folder, applianceId: 'ef', log: log as never })
  await copy.run(server.clock.now() + 2 * dayMs, new AbortController().signal)
  expect([warnings, readFileSync(join(orgFolder(), 'manifest.json'), 'utf8')]).toEqual([
    ['open_files_of_another'],
    manifestBefore,
  ])
  for (const name of Object.keys(texts))
    rmSync(join(folder, name.split('/')[0]!), { recursive: true, force: true })
  rmSync(join(folder, 'org_link'))
  await run()
})

test('open files: a database with fewer arrivals, as after a restore, replaces all of them', async () => {
  const path = join(orgFolder(), 'manifest.json')
  writeFileSync(path, JSON.stringify({ ...manifest(), lastArrival: 1e9 }))
  const countBefore = manifest().files.length
  await run()
  expect(manifest().files.length).toBe(countBefore)
  await expectEqual()
})

test('open files: expired events leave them', async () => {
  const orgId = server.org.id
  const limit = server.clock.now() + 1
  for (;;) {
    const step = await server.store.events.expire({
      orgId,
      receivedBeforeMs: limit,
      receivedUntilMs: limit + hourMs,
    })
    if (step.done) break
  }
  await run()
  expect([days(), manifest().rows, manifest().files]).toEqual([[], 0, []])
})
