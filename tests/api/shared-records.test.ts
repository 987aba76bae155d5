/** Two servers on one PostgreSQL share what one process would have in memory: throttles and progress. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { applianceOrgId } from '../../db/contract/audit.ts'
import { openStore } from '../../db/open.ts'
import { readKeyRing } from '../../server/system/key-ring.ts'
import { makeAudit, makeOrg } from '../store/make.ts'
import { makeAccount, password } from '../support/people.ts'
import { database } from '../support/postgres.ts'
import { testServer, type TestServer } from '../support/server.ts'

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

test('of guesses that are spread over the nodes at once three are checked, and a restart gives no more', async () => {
  const { email } = await makeAccount(a, a.org, 'viewer')
  const guesses = Array.from({ length: 40 }, (_, n) => signIn(n % 2 === 0 ? a : b, email, `a guess ${n}`))
  const statuses = await Promise.all(guesses)
  expect(statuses.filter((status) => status === 401).length).toBe(3)
  expect(statuses.filter((status) => status === 429).length).toBe(37)
  await using again = await openNode('c')
  // The wait after three failures is a second: a slow machine may be past it, but then the next one is two.
  await Bun.sleep(1_100)
  expect([await signIn(again, email, 'a guess'), await signIn(a, email, password)]).toEqual([401, 429])
  await Bun.sleep(2_100)
  expect(await signIn(b, email, password)).toBe(200)
  expect(await signIn(again, email, 'a slip')).toBe(401)
  expect(await signIn(a, email, password)).toBe(200)
})
