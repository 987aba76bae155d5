/** A setup file against a store: what is created, what is left alone, what is rejected as a whole. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import type { Store } from '../../db/contract/store.ts'
import { openDataFolder } from '../../server/runtime/open-data-folder.ts'
import { newSigningSecret } from '../../server/ids.ts'
import { lazySecretBox } from '../../server/system/encryption.ts'
import { applySetup, setUpAtStart } from '../../server/operations/setup/apply.ts'
import { readSetupText } from '../../server/operations/setup/file.ts'
import { secretPurpose } from '../../server/webhooks/sinks/signing.ts'
import { silent } from '../support/silent-log.ts'
import { tempDir } from '../support/temp-dir.ts'
import { openTwoStores } from './sqlite-nodes.ts'

setDefaultTimeout(90_000)
const temp = tempDir('setup')
let now = Date.UTC(2026, 5, 1)
const clock = { now: () => (now += 1_000) }
let store: Store
let resolved = 0
let secret = newSigningSecret()

beforeAll(async () => void (store = await openDataFolder(temp.join('data'), clock)))
afterAll(async () => {
  await store.close()
  temp.remove()
})

function apply(text: string, dryRun = false) {
  const box = lazySecretBox(temp.join('data'))
  const lookUp = async () => {
    resolved++
    return { kind: 'addresses' as const, addresses: ['203.0.113.5'] }
  }
  const resolve = Object.assign(lookUp, { known: () => null })
  const setup = readSetupText(text, 'setup.toml', () => secret)
  return applySetup({ store, clock, box, resolve, sinkDir: null }, setup, { actor: 'system', dryRun })
}

const refusal = (text: string) =>
  apply(text).then(
    () => 'done',
    (error: Error) => error.message,
  )
const did = async (text: string) => (await apply(text)).map((change) => `${change.kind} ${change.did}`)
const hash = (letter: string) => letter.repeat(64)
const org = (slug: string, toml = '') => `[[organizations]]\nslug = "${slug}"\n${toml}`
const key = (letter: string, toml = '', kind = 'secret') =>
  `[[organizations.keys]]\nkind = "${kind}"\nlabel = "a key"\nhash = "${hash(letter)}"\n${toml}\n`
const endpoint = (toml = '') =>
  `[[organizations.endpoints]]\nlabel = "siem"\nurl = "https://siem.example/in"\nsecretFile = "x"\n${toml}\n`

test('a dry run for a new organization reports the changes and makes none', async () => {
  const text = org('acme', '[[organizations.sites]]\nid = "shop"\n' + key('a') + endpoint())
  const planned = (await apply(text, true)).map((change) => `${change.kind} ${change.did}`)
  expect(planned).toEqual(['organization created', 'site created', 'key created', 'endpoint created'])
  expect(await store.orgs.find('acme')).toBeNull()
  expect(await did(text)).toEqual(planned)
  expect((await store.orgs.find('acme'))?.name).toBe('acme')
})

test('another order of scopes is no change; a new expiry is; a past one stays', async () => {
  expect(await did(org('acme', key('b', 'scopes = ["traces:read", "metrics:read"]')))).toContain(
    'key created',
  )
  expect(await did(org('acme', key('b', 'scopes = ["metrics:read", "traces:read"]')))).toContain(
    'key unchanged',
  )
  const ending = org('acme', key('b', 'expires = "2026-06-02"'))
  expect(await did(ending)).toContain('key changed')
  expect((await store.keys.findByHash(hash('b')))?.expiresAtMs).toBe(Date.UTC(2026, 5, 2))
  now += 2 * 86_400_000
  expect(await did(ending)).toContain('key unchanged')
  const [, setupChange] = await apply(org('acme', key('b')))
  expect(setupChange).toMatchObject({ did: 'left', note: expect.stringContaining('expired on 2026-06-02') })
  const [, never] = await apply(org('acme', key('c', 'expires = "2026-06-01"')))
  expect([never?.did, await store.keys.findByHash(hash('c'))]).toEqual(['left', null])
})

test('an endpoint keeps its settings; a new secret replaces the old one, which still signs for a day', async () => {
  const resolvedBefore = resolved
  expect(await did(org('acme', endpoint()))).toEqual(['organization unchanged', 'endpoint unchanged'])
  expect(resolved).toBe(resolvedBefore) // a start resolves no host names
  secret = newSigningSecret()
  expect(await did(org('acme', endpoint('types = ["authz.*"]')))).toContain('endpoint changed')
  const { id: orgId } = (await store.orgs.find('acme'))!
  const [keptEndpoint] = await store.webhooks.endpoints(orgId)
  const { id, encryptedSecret, previousEncryptedSecret, types } = keptEndpoint!.endpoint
  const clear = lazySecretBox(temp.join('data')).decrypt(
    secretPurpose({ orgId, endpointId: id }),
    encryptedSecret,
  )
  expect([clear === secret, previousEncryptedSecret !== null, types]).toEqual([true, true, ['authz.*']])
})

test('sets, changes and removes the retry waits of an endpoint, and names an invalid list by its path', async () => {
  const waits = async () => {
    const { id } = (await store.orgs.find('acme'))!
    return (await store.webhooks.bareEndpoints(id))[0]!.retryWaitsMs
  }
  const ownConfig = org('acme', endpoint('retryWaits = ["60s", 300, "2h"]'))
  expect([await did(ownConfig), await waits()]).toEqual([
    ['organization unchanged', 'endpoint changed'],
    [60_000, 300_000, 7_200_000],
  ])
  expect(await did(ownConfig)).toContain('endpoint unchanged')
  expect([await did(org('acme', endpoint())), await waits()]).toEqual([
    ['organization unchanged', 'endpoint changed'],
    null,
  ])
  expect(() => apply(org('acme', endpoint('retryWaits = ["25h"]')))).toThrow(
    /^setup\.toml:\d+: \S+: retryWaits must add up to at most 24 hours$/,
  )
})

test('one invalid setting changes nothing and is named by its path', async () => {
  const foreign = org('globex', key('d')) + org('acme') + org('initech', key('a'))
  expect(await refusal(foreign)).toBe(
    'setup.toml:12: organizations[2].keys[0]: A key with this hash exists in another organization or with another kind.',
  )
  expect([await store.orgs.find('globex'), await store.keys.findByHash(hash('d'))]).toEqual([null, null])
  const scoped = org('globex', key('e', 'scopes = ["traces:read"]', 'ingest'))
  expect(await refusal(scoped)).toBe('setup.toml:3: organizations[0].keys[0]: Only secret keys have scopes.')
  expect(await store.orgs.find('globex')).toBeNull()
})

test('nodes that start together apply the file one after another', async () => {
  using dir = tempDir('nodes')
  const stores = await openTwoStores(dir.path)
  const started: string[][] = [[], []]
  const text = org('pair', '[[organizations.sites]]\nid = "shop"\n' + key('d') + key('e', '', 'ingest'))
  const setup = readSetupText(text, 'setup.toml', () => secret)
  const start = (node: Store, n: number) => {
    const log = {
      ...silent,
      info: (_: string, fields?: object) => void started[n]!.push(JSON.stringify(fields)),
    }
    const shared = { url: 'postgres://db', node: `node-${n}` }
    const config = { dataDir: dir.path, shared, webhooks: { allow: [], sinkDir: null } }
    return setUpAtStart({ config, store: node, clock, log }, setup)
  }
  await Promise.all(stores.map(start))
  expect(started.map((changes) => changes.length).toSorted()).toEqual([0, 4])
  for (const node of stores) expect((await node.orgs.list()).map(({ slug }) => slug)).toEqual(['pair'])
  for (const node of stores) await node.close()
})
