/** Two servers on one PostgreSQL share what one process would have in memory: throttles and progress. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { Secret, TOTP } from 'otpauth'
import { applianceOrgId } from '../../db/contract/audit.ts'
import { openStore } from '../../db/open.ts'
import { openConnection } from '../../db/postgres/connection/connection.ts'
import { writeCheckpoints } from '../../server/audit/checkpoints.ts'
import { ringSigningKey } from '../../server/audit/signing.ts'
import { acceptLosses, openLosses } from '../../server/audit/evidence.ts'
import { verifyTrail } from '../../server/audit/verify.ts'
import { openDataFolder } from '../../server/runtime/open-data-folder.ts'
import { startLog } from '../../server/log.ts'
import { readKeyRing } from '../../server/system/key-ring.ts'
import { makeErasures, type ErasuresJson } from '../../server/operations/retention/erasures.ts'
import type { Store } from '../../db/contract/store.ts'
import { makeAudit, makeBatch, makeEvent, makeOrg } from '../store/make.ts'
import { cli } from '../support/binary.ts'
import { caller, makeAccount, password, person } from '../support/people.ts'
import { database } from '../support/postgres.ts'
import { testServer, type TestServer } from '../support/server.ts'
import { tempDir } from '../support/temp-dir.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(60_000)

const keyRing = readKeyRing('cd'.repeat(32))
const silentSink = { write() {}, takeDropped: () => 0, flush: async () => {} }
let url = ''
let a: TestServer
let b: TestServer

function openNode(name: string): Promise<TestServer> {
  const open = async (folder: string) => {
    const bootstrap = { org: makeOrg({ slug: 'default' }), audit: makeAudit(applianceOrgId) }
    return openStore({ folder, now: Date.now(), bootstrap, shared: { url, node: name } })
  }
  const node = { name, version: 'test', role: 'all' as const }
  return testServer({ keyRing }, 'quick', { open, node })
}

beforeAll(async () => {
  ;({ url } = await database('migrated'))
  a = await openNode('a')
  b = await openNode('b')
})
afterAll(async () => {
  for (const server of [a, b]) await server[Symbol.asyncDispose]()
})

const signIn = async (server: TestServer, email: string, secret: string) =>
  (await server.call('/api/sign-in', { body: { email, password: secret } })).status

/** The first answer that is not 429. */
async function afterWait(server: TestServer, email: string, secret: string): Promise<number> {
  for (const endMs = performance.now() + 20_000; performance.now() < endMs; await Bun.sleep(100)) {
    const status = await signIn(server, email, secret)
    if (status !== 429) return status
  }
  return 429
}

test('of guesses that are spread over the nodes at once three are checked, and a restart gives no more', async () => {
  const { email } = await makeAccount(a, a.org, 'viewer')
  const guesses = Array.from({ length: 40 }, (_, n) => signIn(n % 2 === 0 ? a : b, email, `a guess ${n}`))
  const statuses = await Promise.all(guesses)
  expect(statuses.filter((status) => status === 401).length).toBe(3)
  expect(statuses.filter((status) => status === 429).length).toBe(37)
  await using again = await openNode('c')
  expect(await afterWait(again, email, 'a guess')).toBe(401)
  expect(await signIn(a, email, password)).toBe(429)
  expect(await afterWait(b, email, password)).toBe(200)
  expect(await signIn(again, email, 'a slip')).toBe(401)
  expect(await signIn(a, email, password)).toBe(200)
})

test('a second factor and a sign-in that begin on one node are completed on another', async () => {
  const onA = await person(a, a.org, 'viewer')
  const enrolment = (await (await onA.post('/api/account/second-factor/begin')).json()) as {
    seed: string
    token: string
  }
  const totp = new TOTP({ secret: Secret.fromBase32(enrolment.seed) })
  const codeAt = (ms: number) => totp.generate({ timestamp: Date.now() + ms })
  const onB = caller(b, onA.cookie)
  const set = { token: enrolment.token, code: codeAt(-30_000), password }
  expect((await onB.post('/api/account/second-factor', set)).status).toBe(200)

  const half = await a.call('/api/sign-in', { body: { email: onA.email, password } })
  const { token } = (await half.json()) as { token: string }
  const body = { token, code: codeAt(0) }
  const answers = [await b.call('/api/sign-in/code', { body }), await a.call('/api/sign-in/code', { body })]
  expect(answers.map(({ status }) => status)).toEqual([200, 401])
  const altered = { token: `${token.slice(0, -2)}AA`, code: codeAt(30_000) }
  expect((await b.call('/api/sign-in/code', { body: altered })).status).toBe(401)
})

test('entries that a superuser cut off the end, heads included, are found by the checkpoints', async () => {
  const key = ringSigningKey(keyRing)
  const folder = tempDir('cut')
  const lines: string[] = []
  const sink = { write: (line: string) => void lines.push(line), takeDropped: () => 0, flush: async () => {} }
  const log = startLog({ level: 'info', clock: a.clock, sink })
  const trail = (node: TestServer) => ({ store: node.store, key, folder: null, log })
  const orgId = 'org_cut'
  for (let n = 1; n <= 6; n++) await a.store.audit.append(makeAudit(orgId, { id: `cut-${n}` }))
  await writeCheckpoints(trail(a), Date.now())
  expect(await writeCheckpoints(trail(b), Date.now())).toBe(0) // another node has none to add
  expect(lines.filter((line) => line.includes('audit_checkpoint') && line.includes(orgId))).toHaveLength(1)
  const verify = () => verifyTrail(folder.path, keyRing, url)
  expect(await verify()).toMatchObject({ ok: true, faults: [] })

  const owner = openConnection({ url, node: 'owner', statementTimeoutMs: 10_000 })
  const past = (table: string, sql: string) =>
    owner.run(`ALTER TABLE ${table} DISABLE TRIGGER ALL; ${sql}; ALTER TABLE ${table} ENABLE TRIGGER ALL`)
  past(
    'audit_entry',
    `DELETE FROM audit_entry WHERE "orgId" = '${orgId}' AND id > 'cut-4';
     UPDATE audit_head SET count = 4, hash = (SELECT hash FROM audit_entry WHERE id = 'cut-4')
       WHERE org_id = '${orgId}'`,
  )
  const { ok, faults } = await verify()
  expect([ok, faults]).toMatchObject([false, [{ orgId, position: 5, kind: 'cut' }]])
  const environment = { SIGHTGLASS_DATABASE: url, SIGHTGLASS_KEY_RING: 'cd'.repeat(32) }
  const printed = await cli(['verify', 'audit'], { dataDir: folder.path, env: environment })
  expect([printed.code, printed.stdout]).toEqual([1, expect.stringContaining('position 5 is cut')])

  const orgFilter = `org_id = '${orgId}'`
  await a.store.audit.append(makeAudit(applianceOrgId))
  await writeCheckpoints(trail(a), Date.now())
  past('audit_checkpoint', `DELETE FROM audit_checkpoint WHERE ${orgFilter}`)
  // A node may have signed one more since.
  const { unsound } = (await verify()).checkpoints
  const messages = new Set(unsound.map(({ message }) => message.replace(/\d+/g, 'N')))
  expect(messages).toEqual(
    new Set(['is missing', 'has N checkpoints, but N were written: the newest are missing']),
  )
  past('audit_checkpoint', `UPDATE audit_checkpoint SET count = 99`)
  expect((await verify()).checkpoints.unsound.at(-1)).toMatchObject({ message: 'has an invalid signature' })
  owner.close()
  folder.remove()
})

test('the newest checkpoints, or all, that a superuser cut are missed until an operator accepts that', async () => {
  using folder = tempDir('cut')
  const { url: ownUrl } = await database('migrated')
  const clock = { now: () => Date.now() }
  const shared = { url: ownUrl, node: 'c' }
  const log = startLog({ level: 'info', clock, sink: silentSink })
  const open = () => openDataFolder(folder.path, clock, { shared, keyRing, upgrades: true })
  const verify = () => verifyTrail(folder.path, keyRing, ownUrl)
  let store = await open()
  const write = async (n: number) => {
    await store.audit.append(makeAudit('org_cut', { id: `cut-${n}` }))
    await writeCheckpoints({ store, key: ringSigningKey(keyRing), folder: null, log }, Date.now())
  }
  for (let n = 0; n < 3; n++) await write(n)
  const owner = openConnection({ url: ownUrl, node: 'owner', statementTimeoutMs: 10_000 })
  for (const seqMax of [2, 0]) {
    expect((await verify()).ok).toBe(true)
    owner.run(
      `ALTER TABLE audit_checkpoint DISABLE TRIGGER ALL;
       DELETE FROM audit_checkpoint WHERE seq > ${seqMax};
       ALTER TABLE audit_checkpoint ENABLE TRIGGER ALL`,
    )
    const cutVerdict = await verify()
    expect([cutVerdict.ok, cutVerdict.checkpoints.unsound.length]).toEqual([false, 1])
    await store.close()
    store = await open()
    await write(10 + seqMax)
    const renewed = await verify()
    expect([renewed.ok, renewed.checkpoints.unsound, openLosses({ losses: renewed.renewed })]).toEqual([
      false,
      [],
      ['audit_checkpoint'],
    ])
    await acceptLosses(store, { dataDir: folder.path, files: ['audit_checkpoint'], actor: 'cli' }, Date.now())
  }
  expect(await verify()).toMatchObject({ ok: true, renewed: [{}, {}] })
  owner.close()
  await store.close()
})

test('an erasure that one node runs is shown by the other, and as stopped when its node is silent', async () => {
  const createOtherEvent = (n: number) => makeEvent(`mine-${n}`, { subject: 'ann@example.com' })
  for (let from = 0; from < 4_000; from += 1_000)
    await a.store.events.append(
      makeBatch(
        a.org.id,
        Array.from({ length: 1_000 }, (_, n) => createOtherEvent(from + n)),
      ),
    )
  const gate = Promise.withResolvers<void>()
  const erase: Store['events']['erase'] = async (command) => {
    if (command.cursor !== null) await gate.promise
    return a.store.events.erase(command)
  }
  const log = startLog({ level: 'error', clock: a.clock, sink: silentSink })
  const gated = { ...a.store, events: { ...a.store.events, erase } }
  const erasures = makeErasures({ store: gated, clock: a.clock, log, node: 'gated' })
  const cookie = await b.signIn('owner')
  const view = async (server: TestServer) =>
    (await (await server.call('/api/erase', { headers: { cookie } })).json()) as ErasuresJson
  await erasures.start({ orgId: a.org.id, actor: 'cli' }, { kind: 'subject', value: 'ann@example.com' })
  for (const server of [a, b]) {
    const { running, last } = await view(server)
    expect([running?.by, last]).toEqual(['subject', null])
    expect(running!.events).toBeGreaterThan(0)
    const second = { headers: { cookie }, body: { session: 'x' } }
    expect((await server.call('/api/erase', second)).status).toBe(409)
  }

  const owner = openConnection({ url, node: 'owner', statementTimeoutMs: 10_000 })
  owner.run('UPDATE erasure SET seen_at_ms = seen_at_ms - 31000')
  owner.close()
  const problem = 'gated stopped before it finished: erase again'
  expect(await view(b)).toMatchObject({ running: null, last: { by: 'subject', erased: null, problem } })
  const again = { headers: { cookie }, body: { subject: 'ann@example.com' } }
  expect((await b.call('/api/erase', again)).status).toBe(202)
  await until(async () => (await view(a)).running === null)
  gate.resolve()
  await erasures.stop() // it was replaced, and changes nothing
  expect(await view(a)).toMatchObject({ last: { erased: { deliveries: 0 }, problem: null } })
  expect((await a.store.events.overview(a.org.id)).total).toBe(0)
})
