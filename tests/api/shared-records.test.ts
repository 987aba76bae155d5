/** Two servers on one PostgreSQL share what one process would have in memory: throttles and progress. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { applianceOrgId } from '../../db/contract/audit.ts'
import { openStore } from '../../db/open.ts'
import { openConnection } from '../../db/postgres/connection/connection.ts'
import { writeCheckpoints } from '../../server/audit/checkpoints.ts'
import { ringSigningKey } from '../../server/audit/signing.ts'
import { verifyTrail } from '../../server/audit/verify.ts'
import { startLog } from '../../server/log.ts'
import { readKeyRing } from '../../server/system/key-ring.ts'
import { makeAudit, makeOrg } from '../store/make.ts'
import { cli } from '../support/binary.ts'
import { makeAccount, password } from '../support/people.ts'
import { database } from '../support/postgres.ts'
import { testServer, type TestServer } from '../support/server.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(60_000)

const keyRing = readKeyRing('cd'.repeat(32))
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
  ;({ url } = await database())
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

test('entries that a superuser cut off the end, heads included, are found by the checkpoints', async () => {
  const { key, folder } = { key: ringSigningKey(keyRing), folder: tempDir('cut') }
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

  const of = `org_id = '${orgId}'`
  await a.store.audit.append(makeAudit(applianceOrgId))
  await writeCheckpoints(trail(a), Date.now())
  past('audit_checkpoint', `DELETE FROM audit_checkpoint WHERE ${of}`)
  expect((await verify()).checkpoints.unsound).toMatchObject([{ message: 'is missing' }])
  past('audit_checkpoint', `UPDATE audit_checkpoint SET count = 99`)
  expect((await verify()).checkpoints.unsound.at(-1)).toMatchObject({ message: 'has an invalid signature' })
  owner.close()
  folder.remove()
})
