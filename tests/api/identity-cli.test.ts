/** Every verb of the command line that changes something writes exactly one audit row, and none when it fails. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import type { Json } from '../../db/contract/store.ts'
import { auditEntry } from '../../server/audit/entry.ts'
import { commands } from '../../server/cli/run.ts'
import { workTable } from '../../server/cli/data-command.ts'
import type { WorkContext } from '../../server/runtime/work.ts'
import { newToken } from '../../server/ids.ts'
import { lazySecretBox } from '../../server/system/encryption.ts'
import { addressGuard, resolveWith, systemResolver } from '../../server/webhooks/sinks/addresses.ts'
import { cli } from '../support/binary.ts'
import { auditCount, makeAccount, makeOrg } from '../support/people.ts'
import { testServer, type TestServer } from '../support/server.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(90_000) // one test starts the executable 26 times

type Params = { [member: string]: Json }
type Answer = { [member: string]: Json } & { id: string; deliveryId: string }

let server: TestServer
let context: WorkContext
beforeAll(async () => {
  server = await testServer()
  const { store, clock, dataDir } = server
  const resolve = resolveWith(systemResolver, addressGuard([]))
  context = {
    store,
    clock,
    baseUrl: 'http://127.0.0.1:7400',
    webhooks: () => ({ store, clock, box: lazySecretBox(dataDir), resolve, sinkDir: null }),
  }
  await makeOrg(server, 'other') // the only organization cannot be deleted
}, 90_000)
afterAll(() => server[Symbol.asyncDispose]())

const org = 'default'
const call = async (verb: string, params: Params): Promise<Answer> =>
  (await workTable(commands).get(verb)!(context, params)) as Answer
const newName = (): string =>
  `w${newToken()
    .slice(0, 10)
    .toLowerCase()
    .replaceAll(/[^a-z]/g, 'x')}`
const member = async (role: 'owner' | 'viewer' = 'viewer', operator = false): Promise<string> =>
  (await makeAccount(server, server.org, role, { operator })).email
const key = async () =>
  (await call('key create', { kind: 'ingest', label: 'x', org, site: [], scope: [], expires: null })).id
const endpoint = async () => (await call('webhook add', added())).id
const added = (): Params => ({
  org,
  url: `https://${newName()}.example.com/`,
  types: [],
  outcomes: [],
  classes: [],
  sites: [],
  label: null,
  allow: [],
  sinkDir: null,
})

const refusal = (verb: string, params: Params): Promise<string> =>
  call(verb, params).then(
    () => 'done',
    (error: Error) => error.message,
  )

/** The parameters of a successful call of each verb. */
const calls: { [verb: string]: () => Promise<Params> | Params } = {
  'org create': () => ({ name: 'Acme', slug: newName() }),
  'org rename': () => ({ org, name: 'Renamed' }),
  'org delete': () => ({ org, confirm: org }),
  'org sign-in-rule': async () => {
    const { slug } = await makeOrg(server, newName())
    return { org: slug, secondFactor: 'required' }
  },
  'org keep': async () => {
    await call('org delete', { org, confirm: org }).catch(() => null) // it may be requested already
    return { org }
  },
  'account create': () => ({ email: `${newName()}@example.com`, role: 'viewer', org, password: null }),
  'account reset-password': async () => ({ email: await member() }),
  'account invite': () => ({ email: `${newName()}@example.com`, role: 'admin', org }),
  'account set-role': async () => ({ email: await member(), role: 'analyst', org }),
  'account remove': async () => ({ email: await member(), org }),
  'account make-operator': async () => ({ email: await member() }),
  'account drop-operator': async () => {
    await member('viewer', true)
    return { email: await member('viewer', true) }
  },
  'account reset-second-factor': async () => {
    const { id, email } = await makeAccount(server, server.org, 'viewer')
    const act = { action: 'account.second_factor_set', target: id }
    const audit = auditEntry({ orgId: server.org.id, actor: 'cli' }, act, server.clock.now())
    const factor = { accountId: id, encryptedSeed: 'sealed', lastStep: 0, sinceMs: 0 }
    await server.store.secondFactors.set({ factor, recoveryHashes: ['x'], audit })
    return { email }
  },
  'demo remove': () => ({ org }),
  erase: () => ({ org, kind: 'session', value: newName() }),
  'site change': () => ({
    org,
    siteId: newName(),
    name: 'A site',
    hidden: null,
    restricted: 'yes',
    hosts: 'a.example',
  }),
  'key create': () => ({ kind: 'secret', label: 'x', org, site: [], scope: [], expires: null }),
  'key revoke': async () => ({ id: await key(), org: null }),
  'key rotate': async () => ({ id: await key(), overlap: '1h' }),
  'key change': async () => ({ id: await key(), label: 'y' }),
}

// Webhooks, backups, evidence, robots.txt, the clock and the setup file have their own tests.
const elsewhere = /^(?:webhook |backup |evidence |site policy$|clock |setup$)/
const changing = commands
  .filter(({ name, access }) => access !== undefined && access !== 'read' && !elsewhere.test(name))
  .map(({ name }) => name)

test('this test calls every verb that changes something, and no other', () => {
  expect(Object.keys(calls).sort()).toEqual(changing.sort())
})

describe('each changing verb', () => {
  for (const verb of changing) {
    test(verb, async () => {
      const params = await calls[verb]!()
      const countBefore = await auditCount(server)
      await call(verb, params)
      expect((await auditCount(server)) - countBefore).toBe(1)
      const strange = {
        ...params,
        org: 'no-such-org',
        id: 'key_none',
        email: 'nobody@nowhere.example',
        slug: org,
      }
      expect(await refusal(verb, strange)).not.toBe('done')
      expect((await auditCount(server)) - countBefore).toBe(1)
    })
  }
})

test('the last owner and the last operator stay', async () => {
  const house = await makeOrg(server, 'house')
  const { email } = await makeAccount(server, house, 'owner')
  for (const verb of ['account set-role', 'account remove']) {
    expect(await refusal(verb, { email, role: 'viewer', org: 'house' })).toContain('needs at least one owner')
  }
})

test('typed by a user: link, role, site, rotation, proof and verification', async () => {
  using folder = tempDir('identity-cli')
  const dataDir = folder.join('data')
  const run = async (...args: string[]): Promise<Answer> => {
    const exit = await cli([...args, '--json'], { dataDir })
    expect([args.join(' '), exit.code, exit.stderr]).toEqual([args.join(' '), 0, ''])
    return JSON.parse(exit.stdout) as Answer
  }
  await run('account', 'create', '--email', 'ann@example.com', '--role', 'owner')
  expect(await run('account', 'invite', '--email', 'bob@example.com', '--role', 'viewer')).toMatchObject({
    email: 'bob@example.com',
    link: expect.stringMatching(/^http:\/\/127\.0\.0\.1:7400\/invitation#[\w-]{43}$/),
  })
  await run('account', 'create', '--email', 'cyd@example.com', '--role', 'viewer')
  await run('account', 'set-role', '--email', 'cyd@example.com', '--role', 'admin')
  await run('account', 'make-operator', '--email', 'cyd@example.com')
  await run('account', 'drop-operator', '--email', 'ann@example.com')
  const last = await cli(['account', 'drop-operator', '--email', 'cyd@example.com'], { dataDir })
  expect([last.code, last.stderr]).toEqual([1, expect.stringContaining('keeps at least one operator')])
  await run('site', 'change', 'shop', '--name', 'Shop', '--restricted', 'yes')
  expect(await run('site', 'list')).toMatchObject({
    sites: [{ siteId: 'shop', name: 'Shop', restricted: true }],
  })
  await run('site', 'change', 'shop', '--name', 'The shop')
  const keyAnswer = await run('key', 'create', '--kind', 'ingest', '--label', 'shop', '--site', 'a')
  expect(await run('key', 'change', keyAnswer.id, '--site=', '--org=default')).toMatchObject({ siteIds: [] })
  expect(await run('key', 'rotate', keyAnswer.id, '--overlap', '0h', '--org', 'default')).toMatchObject({
    label: 'shop',
    old: { id: keyAnswer.id },
  })
  const odd = await cli(['key', 'rotate', keyAnswer.id, '--overlap', 'soon'], { dataDir })
  expect([odd.code, odd.stderr]).toEqual([2, expect.stringContaining('not a span')])
  const unsure = await cli(['org', 'delete', '--org', 'default', '--confirm', 'acme'], { dataDir })
  expect(unsure.code).toBe(1)
  const proof = folder.join('proof.jsonl')
  const written = await run('export', 'audit', '--proof', '--out', proof)
  const [head, ...rows] = readFileSync(proof, 'utf8').trim().split('\n')
  expect(JSON.parse(head ?? '')).toMatchObject({ format: 'sightglass-audit-proof-1', head: written['head'] })
  expect(rows.length).toBe(Number(written['count']))
  const again = await cli(['export', 'audit', '--proof', '--out', proof], { dataDir })
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('--yes')])
  const csv = await cli(['export', 'audit', '--format', 'csv'], { dataDir })
  expect(csv.stdout).toStartWith('id,orgId,actor,action,target,metadata,occurredAt\n')
  // A new name alone is `renamed`; any other difference makes it `changed`.
  expect(csv.stdout.match(/site\.\w+/g)).toEqual(['site.renamed', 'site.changed'])
  expect(await run('verify', 'audit')).toMatchObject({ ok: true, faults: [] })
  expect((await cli(['verify', 'everything'], { dataDir })).code).toBe(2)
}, 90_000)
