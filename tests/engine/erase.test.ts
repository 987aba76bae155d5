/** Erasure by dashboard and command line: no byte of the data folder holds the erased data. */
import { expect, test } from 'bun:test'
import { openDatabase } from '../../db/sqlite/file/connection.ts'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { openDatabaseAdmin } from '../../db/open.ts'
import type { ErasuresJson } from '../../server/operations/retention/erasures.ts'
import { batchBody } from '../../server/webhooks/delivery/fan-out.ts'
import { startAppliance } from '../support/binary.ts'
import { makeAudit } from '../store/make.ts'
import { event } from '../support/events.ts'
import { person, type Person } from '../support/people.ts'
import { testServer } from '../support/server.ts'
import { blockTexts } from './block-texts.ts'

const email = 'somebody-to-forget@example.com'
const session = 'session-to-forget'
const marks = [email, session, 'id-to-forget', 'note-to-forget']

/** Every third event is theirs; some by session only, some by subject only. */
function events(count: number) {
  return Array.from({ length: count }, (_, n) => {
    if (n % 3 !== 0) return event(`evt_${n}`, { sessionId: `ses_${n}`, metadata: { number: n } })
    const metadata = { subject: email, note: `note-to-forget ${n}` }
    return event(`id-to-forget-${n}`, { sessionId: session, metadata })
  })
}

/** The marks that occur in a file of the folder as they are, or in an inflated block. */
function marksIn(folder: string): string[] {
  const foundMarks: string[] = []
  for (const name of readdirSync(folder, { recursive: true }) as string[]) {
    const path = join(folder, name)
    if (!statSync(path).isFile()) continue
    const bytes = readFileSync(path)
    for (const mark of marks) if (bytes.includes(mark)) foundMarks.push(`${mark} in ${name}`)
  }
  const db = openDatabase(join(folder, 'sightglass.db'), { readonly: true })
  for (const text of blockTexts(db))
    for (const mark of marks) if (text.includes(mark)) foundMarks.push(`${mark} in a block`)
  db.close()
  return foundMarks
}

/** Bytes that are not zero in free pages, after the list of free pages itself. */
function dirtyFreeBytes(path: string): { pages: number; dirty: number } {
  const file = readFileSync(path)
  const pageBytes = file.readUInt16BE(16)
  const page = (number: number) => file.subarray((number - 1) * pageBytes, number * pageBytes)
  const dirtyIn = (bytes: Buffer) => bytes.reduce((sum, byte) => sum + (byte === 0 ? 0 : 1), 0)
  let pages = 0
  let dirty = 0
  for (let trunk = file.readUInt32BE(32); trunk !== 0; trunk = page(trunk).readUInt32BE(0)) {
    const leaves = page(trunk).readUInt32BE(4)
    pages += 1 + leaves
    dirty += dirtyIn(page(trunk).subarray(8 + 4 * leaves))
    for (let leaf = 0; leaf < leaves; leaf++) dirty += dirtyIn(page(page(trunk).readUInt32BE(8 + 4 * leaf)))
  }
  return { pages, dirty }
}

async function countOf(person: Person, selection: object): Promise<unknown> {
  const answer = await person.post('/api/erase/count', selection)
  expect(answer.status).toBe(200)
  return answer.json()
}

/** The owner's result when no erasure is running. */
async function ended(person: Person): Promise<ErasuresJson> {
  for (const endMs = performance.now() + 30_000; ; await Bun.sleep(20)) {
    const state = (await (await person.call('/api/erase')).json()) as ErasuresJson
    if (state.running === null) return state
    if (performance.now() > endMs) throw new Error(JSON.stringify(state))
  }
}

test('erased data is in no byte of the folder, and everything else is unchanged', async () => {
  await using server = await testServer()
  const { store, org, dataDir } = server
  const key = await server.key('ingest')
  const owner = await person(server, org, 'owner')
  const allEvents = events(900)
  expect((await server.call('/v1/sdk/events', { key, body: { events: allEvents } })).status).toBe(202)
  const bad = { ...allEvents[0], id: 'id-to-forget-bad', type: 'NO' }
  await server.call('/v1/sdk/events', { key, body: { events: [bad] } })
  const { body } = batchBody(
    1,
    allEvents.slice(0, 30).map((testEvent) => ({ json: JSON.stringify(testEvent), receivedAtMs: 0 })),
    0,
  )
  const audit = makeAudit(org.id)
  const deliveryFields = {
    id: 'wh_test',
    orgId: org.id,
    endpointId: null,
    url: 'http://127.0.0.1:9/',
    lane: 'x',
    body,
  }
  await store.webhooks.schedule({
    delivery: { ...deliveryFields, scheduledAtMs: server.clock.now() + 3_600_000 },
    audit,
  })
  expect(new Set(marksIn(dataDir).map((place) => place.split(' ')[0]))).toEqual(new Set(marks))

  for (const wrong of [{}, { session, subject: email }])
    for (const path of ['/api/erase', '/api/erase/count'])
      expect((await owner.post(path, wrong)).status).toBe(400)
  expect(await countOf(owner, { subject: email })).toEqual({ events: 300 })
  expect(await countOf(owner, { subject: email.toUpperCase() })).toEqual({ events: 0 })
  expect((await owner.post('/api/erase', { subject: email })).status).toBe(202)
  expect(await ended(owner)).toEqual({
    running: null,
    last: {
      by: 'subject',
      endedAt: expect.any(String),
      erased: { events: 300, deliveries: 1, samples: 1, logEmptied: true },
      problem: null,
    },
    beyond: [/arrived after the start/, /backups/, /sent elsewhere/, /counts of hours/].map((pattern) =>
      expect.stringMatching(pattern),
    ),
  })
  expect(marksIn(dataDir)).toEqual([])
  expect(dirtyFreeBytes(join(dataDir, 'sightglass.db')).dirty).toBe(0)

  expect((await openDatabaseAdmin(dataDir).verifyEvents()).faults).toEqual([])
  const delivery = await store.webhooks.find({ orgId: org.id, id: 'wh_test' })
  expect((JSON.parse(delivery!.delivery.body) as { data: { events: unknown[] } }).data.events).toEqual(
    allEvents.slice(0, 30).filter((_, n) => n % 3 !== 0),
  )
  expect((await store.events.metrics({ orgId: org.id, sinceMs: 0, untilMs: null, rowsMax: 0 })).total).toBe(
    600,
  )
  const again = await server.call('/v1/sdk/events', { key, body: { events: allEvents } })
  expect(await again.json()).toEqual({ ok: true, accepted: 0, deduped: 900 })
  const [row] = await store.audit
    .rows({ orgId: org.id, afterSeq: 0, limit: 100 })
    .then((auditRows) => auditRows.filter(({ action }) => action === 'events.erased'))
  expect([row?.target, row?.actor]).toEqual([
    expect.stringMatching(/^subject-hash:[0-9a-f]{32}$/),
    `user:${owner.id}`,
  ])
}, 90_000)

test('the verb erases through a running server and without one, and requires --yes', async () => {
  await using appliance = await startAppliance()
  const keyResult = await appliance.cli('key', 'create', '--kind', 'ingest', '--label', 'x', '--json')
  const { key } = JSON.parse(keyResult.stdout) as { key: string }
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ events: events(300) })
  const response = await fetch(`${appliance.url}/v1/sdk/events`, { method: 'POST', headers, body })
  expect(await response.json()).toEqual({ ok: true, accepted: 300, deduped: 0 })

  const unsure = await appliance.cli('erase', '--session', session)
  expect([unsure.code, unsure.stderr]).toEqual([2, expect.stringContaining('--yes')])
  expect((await appliance.cli('erase', '--yes')).code).toBe(2)
  const unknownOrg = await appliance.cli('erase', '--session', session, '--org', 'none', '--yes')
  expect(unknownOrg.code).toBe(1)
  const eraseResult = await appliance.cli('erase', '--session', session, '--yes', '--json')
  expect([eraseResult.code, JSON.parse(eraseResult.stdout)]).toEqual([
    0,
    expect.objectContaining({ by: 'session', events: 100, deliveries: 0, samples: 0, logEmptied: true }),
  ])
  expect(marksIn(appliance.dataDir)).toEqual([])
  const text = await appliance.cli('erase', '--subject', email, '--yes')
  expect([text.code, text.stdout]).toEqual([0, expect.stringMatching(/^Erased 0 events[\s\S]*Out of reach:/)])
}, 90_000)
