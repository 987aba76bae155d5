/** The work of the commands on a real store: results, errors, and one audit row per change. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AuditEntry, Json, Store } from '../../db/contract/store.ts'
import { verifyPassword } from '../identity/sign-in/password.ts'
import { newId, sha256Hex } from '../ids.ts'
import { demoTraffic } from '../demo/traffic.ts'
import { openDataFolder } from '../runtime/open-data-folder.ts'
import type { Params } from '../runtime/work.ts'
import { usageOf } from './command.ts'
import { commands } from './run.ts'
import { workTable } from './data-command.ts'

type Answer = { [member: string]: Json }

const folder = mkdtempSync(join(tmpdir(), 'sightglass-verbs-'))
const clock = { now: () => Date.UTC(2026, 5, 23, 12) }
const work = workTable(commands)
let store: Store

beforeAll(async () => {
  store = await openDataFolder(join(folder, 'data'), clock)
})
afterAll(async () => {
  await store.close()
  rmSync(folder, { recursive: true, force: true })
})

function call(verb: string, params: Params = {}): Promise<Answer> {
  const webhooks = () => {
    throw new Error('no webhook verb is called here')
  }
  const context = { store, clock, baseUrl: 'http://127.0.0.1:7400', webhooks }
  return work.get(verb)!(context, params) as Promise<Answer>
}

async function auditRows(): Promise<AuditEntry[]> {
  const chains = ['org_system', ...(await store.orgs.list()).map(({ id }) => id)]
  const lists = await Promise.all(
    chains.map((orgId) => store.audit.list({ orgId, limit: 1_000, beforeSeq: null })),
  )
  return lists.flatMap(({ entries }) => entries)
}

/** Runs the verb and returns its answer with the audit rows it wrote. */
async function changing(verb: string, params: Params): Promise<{ answer: Answer; rows: AuditEntry[] }> {
  const idsBefore = new Set((await auditRows()).map(({ id }) => id))
  const answer = await call(verb, params)
  return { answer, rows: (await auditRows()).filter(({ id }) => !idsBefore.has(id)) }
}

async function refused(verb: string, params: Params): Promise<string> {
  const countBefore = (await auditRows()).length
  const outcome = await call(verb, params).then(
    () => 'it was done',
    (error: Error) => error.message,
  )
  expect((await auditRows()).length).toBe(countBefore)
  return outcome
}

describe('organizations', () => {
  test('an empty folder gets the organization default, created by the system', async () => {
    expect((await call('org list'))['orgs']).toMatchObject([{ slug: 'default', name: 'Default' }])
    expect(await auditRows()).toMatchObject([{ orgId: 'org_system', actor: 'system', action: 'org.created' }])
  })

  test("create generates a slug and writes one row in the appliance's chain", async () => {
    const { answer, rows } = await changing('org create', { name: '  Ünïque Shop & Söhne ' })
    expect(answer).toMatchObject({ name: 'Ünïque Shop & Söhne', slug: 'unique-shop-sohne' })
    expect(rows).toMatchObject([
      {
        orgId: 'org_system',
        actor: 'cli',
        action: 'org.created',
        target: answer['id'],
        occurredAtMs: clock.now(),
      },
    ])
  })

  test.each([
    [{ name: 'Twice', slug: 'default' }, 'already'],
    [{ name: 'X', slug: 'Big' }, 'not a valid slug'],
    [{ name: 'X', slug: '-' }, 'not a valid slug'],
    [{ name: 'X', slug: 'a'.repeat(41) }, 'not a valid slug'],
    [{ name: 'X', slug: 'system' }, 'not a valid slug'],
    [{ name: '東京' }, 'no letters for a slug'],
    [{ name: ' ' }, '1 to 80'],
    [{ name: 'a\nb' }, 'characters that cannot be seen'],
    [{}, 'name is missing'],
  ])('refused: %j', async (params, part) => {
    expect(await refused('org create', params as Params)).toContain(part)
  })
})

describe('accounts', () => {
  test('with a password an account works at once; only the first owner is operator', async () => {
    const params = {
      email: ' Ann@Example.com',
      role: 'owner',
      org: 'default',
      password: 'correct horse battery',
    }
    const { answer, rows } = await changing('account create', params)
    expect(answer).toMatchObject({ email: 'ann@example.com', role: 'owner', operator: true, link: null })
    expect(rows).toMatchObject([
      {
        actor: 'cli',
        action: 'account.created',
        target: answer['id'],
        metadata: { email: 'ann@example.com', role: 'owner' },
      },
    ])
    const account = await store.accounts.findByEmail('ann@example.com')
    expect(await verifyPassword('correct horse battery', account!.passwordHash)).toBe(true)
    const second = { email: 'bob@example.com', role: 'owner', org: 'default', password: 'another long one' }
    expect(await call('account create', second)).toMatchObject({ operator: false })
  })

  test('without a password it returns a link that sets one once', async () => {
    const { answer, rows } = await changing('account create', {
      email: 'cy@example.com',
      role: 'viewer',
      org: 'default',
    })
    expect(rows).toHaveLength(1)
    expect(answer['link']).toMatch(/^http:\/\/127\.0\.0\.1:7400\/reset#[\w-]{43}$/)
    expect(answer['linkExpiresAt']).toBe('2026-06-23T12:30:00.000Z')
    const token = String(answer['link']).split('#')[1]!
    const use = { linkHash: sha256Hex(token), passwordHash: 'x', now: clock.now(), auditId: newId('aud') }
    expect(await store.accounts.resetPassword(use)).toBe('done')
    expect(await store.accounts.resetPassword({ ...use, auditId: newId('aud') })).toBe('link_invalid')
  })

  test('reset-password writes one row; its link invalidates the previous one', async () => {
    const first = await changing('account reset-password', { email: 'ann@example.com' })
    expect(first.rows).toMatchObject([
      { action: 'account.reset_link_created', target: first.answer['accountId'] },
    ])
    expect(JSON.stringify(first.rows)).not.toContain(String(first.answer['link']).split('#')[1]!)
    await call('account reset-password', { email: 'ann@example.com' })
    const linkHash = sha256Hex(String(first.answer['link']).split('#')[1]!)
    const use = { linkHash, passwordHash: 'x', now: clock.now(), auditId: newId('aud') }
    expect(await store.accounts.resetPassword(use)).toBe('link_invalid')
  })

  test('list has each role with its organization and no hashes', async () => {
    const answer = await call('account list')
    expect(answer['accounts']).toContainEqual(
      expect.objectContaining({
        email: 'ann@example.com',
        operator: true,
        memberships: [expect.objectContaining({ orgSlug: 'default', role: 'owner' })],
      }),
    )
    expect(JSON.stringify(answer)).not.toContain('argon2')
  })

  test.each([
    ['account create', { email: 'ann@example.com', role: 'viewer', org: 'default' }, 'already exists'],
    ['account create', { email: 'nobody', role: 'viewer', org: 'default' }, 'email must be an address'],
    ['account create', { email: 'a b@c', role: 'viewer', org: 'default' }, 'email must be an address'],
    ['account create', { email: 'd@e.f', role: 'viewer', org: 'nowhere' }, 'No organization'],
    ['account create', { email: 'd@e.f', role: 'viewer', org: 'default', password: 'short' }, 'at least 8'],
    ['account create', { email: 'd@e.f', role: 'viewer', org: 'default', password: 'password1' }, 'lists'],
    ['account reset-password', { email: 'd@e.f' }, 'No account'],
  ])('refused: %s %j', async (verb, params, part) => {
    expect(await refused(verb, params)).toContain(part)
  })
})

describe('keys', () => {
  test('create returns the key once, stores only its hash and writes one row without the key', async () => {
    const params = {
      kind: 'ingest',
      org: 'default',
      label: 'shop',
      site: ['a', 'b', 'a'],
      expires: '90d',
      behindProxy: true,
    }
    const { answer, rows } = await changing('key create', params)
    expect(answer).toMatchObject({
      kind: 'ingest',
      label: 'shop',
      siteIds: ['a', 'b'],
      scopes: [],
      behindProxy: true,
      createdAt: '2026-06-23T12:00:00.000Z',
      expiresAt: '2026-09-21T12:00:00.000Z',
      revokedAt: null,
    })
    expect(answer['key']).toMatch(/^agtx_ik_[\w-]{32}$/)
    expect(answer['prefix']).toBe(String(answer['key']).slice(0, 16))
    expect(rows).toMatchObject([{ actor: 'cli', action: 'ingest_key.created', target: answer['id'] }])
    expect(JSON.stringify(rows)).not.toContain(String(answer['key']))
    expect(await store.keys.findByHash(sha256Hex(String(answer['key'])))).toMatchObject({ id: answer['id'] })
  })

  test('revoke needs only the id, in any organization, and is idempotent', async () => {
    const org = await call('org create', { name: 'Other' })
    const params = { kind: 'secret', org: String(org['id']), label: 'export', scope: ['traces:read'] }
    const keyAnswer = await call('key create', params)
    expect(keyAnswer['scopes']).toEqual(['traces:read'])
    const { answer, rows } = await changing('key revoke', { id: keyAnswer['id']!, org: null })
    expect(answer).toMatchObject({ id: keyAnswer['id'], revokedAt: '2026-06-23T12:00:00.000Z' })
    expect(rows).toMatchObject([{ orgId: org['id'], action: 'secret_key.revoked', target: keyAnswer['id'] }])
    expect((await changing('key revoke', { id: keyAnswer['id']!, org: null })).rows).toEqual([])
    expect((await call('key list', { org: 'other', kind: null }))['keys']).toMatchObject([
      { state: 'revoked' },
    ])
    expect((await call('key list', { org: 'other', kind: 'ingest' }))['keys']).toEqual([])
    expect(await refused('key revoke', { id: keyAnswer['id']!, org: 'default' })).toContain('No key')
  })

  test.each([
    [{ kind: 'ingest', label: '' }, 'label must have 1 to 80'],
    [{ kind: 'ingest', label: 'x'.repeat(81) }, 'label must have 1 to 80'],
    [{ kind: 'ingest', label: 'x', scope: ['traces:read'] }, 'secret keys only'],
    [{ kind: 'secret', label: 'x', site: ['a'] }, 'ingest keys only'],
    [{ kind: 'secret', label: 'x', scope: ['all'] }, 'not a scope'],
    [{ kind: 'secret', label: 'x', behindProxy: true }, 'ingest keys only'],
    [{ kind: 'ingest', label: 'x', site: ['a'.repeat(201)] }, 'at most 200'],
    [{ kind: 'ingest', label: 'x', expires: '2026-02-31' }, 'not a time'],
    [{ kind: 'ingest', label: 'x', expires: '2026-06-23T12:00:00Z' }, 'not in the future'],
    [{ kind: 'ingest', label: 'x', expires: '0d' }, 'not in the future'],
    [{ kind: 'ingest', label: 'x', expires: '999999w' }, 'years away'],
    [{ kind: 'ingest', label: 'x', org: 'nowhere' }, 'No organization'],
  ])('refused: %j', async (params, part) => {
    expect(await refused('key create', { org: 'default', ...params } as Params)).toContain(part)
  })
})

describe('demo', () => {
  test('fill and remove write one row each; remove deletes only the demo site', async () => {
    const beginResult = await changing('demo begin', { org: 'default', seed: 1, events: 100 })
    expect(beginResult.rows).toMatchObject([
      { action: 'demo.filled', target: 'demo-shop', metadata: { seed: 1, events: 100 } },
    ])
    const orgId = String(beginResult.answer['orgId'])
    const ownEvent = {
      id: 'own',
      siteId: 'shop',
      sessionId: 's',
      occurredAt: '2026-06-23T12:00:00Z',
      type: 'a.b',
      outcome: 'success',
    }
    const [day] = demoTraffic({ seed: 1, events: 1_000, nowMs: clock.now() })
    const added = await changing('demo append', { orgId, body: JSON.stringify({ events: day! }) })
    expect(added).toEqual({ answer: { accepted: day!.length, deduped: 0, rejected: 0 }, rows: [] })
    expect(await refused('demo append', { orgId, body: JSON.stringify({ events: [ownEvent] }) })).toContain(
      'contract',
    )
    const { answer, rows } = await changing('demo remove', { org: 'default' })
    expect(answer).toMatchObject({ siteId: 'demo-shop', removed: day!.length })
    expect(rows).toMatchObject([{ action: 'demo.removed', target: 'demo-shop' }])
    const again = await call('demo append', { orgId, body: JSON.stringify({ events: day! }) })
    expect(again).toEqual({ accepted: day!.length, deduped: 0, rejected: 0 })
    await call('demo remove', { org: 'default' })
  })
  test("fill pushes the site's tools and memory once; remove deletes them", async () => {
    const pushedNow = async (orgId: string) => {
      const scope = { orgId, siteId: 'demo-shop' }
      const { tools } = await store.registry.tools({
        orgId,
        siteIds: ['demo-shop'],
        withRemoved: true,
        after: null,
        limit: 1_000,
        bytesMax: 10_000_000,
      })
      const memory = await store.registry.memory({ ...scope, version: null })
      const versions = await store.registry.memoryVersions({ ...scope, limit: 10 })
      return { tools, memory, scores: versions.map(({ score }) => score) }
    }
    const { orgId } = await call('demo begin', { org: 'default', seed: 1, events: 100 })
    const first = await pushedNow(String(orgId))
    expect(first.tools).toHaveLength(117)
    expect(first.tools.filter(({ removedAtMs }) => removedAtMs !== null)).toEqual([])
    expect(new Set(first.tools.map(({ version }) => version))).toEqual(new Set([1, 2]))
    expect(first.memory).toMatchObject({ version: 3, score: 83, computed: true })
    expect(first.scores).toEqual([83, 67, 50])
    await call('demo begin', { org: 'default', seed: 2, events: 100 })
    expect(await pushedNow(String(orgId))).toEqual(first)
    await call('demo remove', { org: 'default' })
    expect(await pushedNow(String(orgId))).toEqual({ tools: [], memory: null, scores: [] })
  })
})

test('each line of a usage begins with its command', () => {
  const commandNames = commands.map(({ name }) => name).toSorted((a, b) => b.length - a.length)
  for (const command of commands.filter(({ name }) => name.includes(' '))) {
    const noun = command.name.split(' ')[0]
    for (const line of usageOf(command).split(' | '))
      expect([command.name, commandNames.find((name) => line.startsWith(name))?.split(' ')[0]]).toEqual([
        command.name,
        noun,
      ])
  }
})
