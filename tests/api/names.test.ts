/** Names with characters that cannot be seen are refused at every door: pages, gateway, command line, set-up file. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { person, type Person } from '../support/people.ts'
import { startAppliance, type Appliance } from '../support/binary.ts'
import { testServer, type TestServer } from '../support/server.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(120_000)

const unseen: readonly string[] = [
  '\u200b',
  'Ac\u200bme',
  'emca\u202e',
  'Acme\u{e0041}',
  'Ac\u00adme',
  'a\u2066b',
  '\u2800',
]
const visibleNames: readonly string[] = ['Bäckerei 👩🏽\u200d🚀', 'می\u200cخواهم']

let server: TestServer
let owner: Person
let secret: string
beforeAll(async () => {
  server = await testServer({ rateLimits: { gateway: null, ingest: null, dashboard: null } as never })
  owner = await person(server, server.org, 'owner', { operator: true })
  secret = await server.key('secret')
  const body = { url: 'https://example.com/' }
  const created = await server.call('/v1/webhooks/endpoints', { key: secret, body })
  const { endpoint } = (await created.json()) as { endpoint: { id: string } }
  namedThings['alert rule']!.body = { ...namedThings['alert rule']!.body, endpointId: endpoint.id }
})
afterAll(() => server[Symbol.asyncDispose]())

/** What people and programs name over HTTP, with the field that holds the name. */
const namedThings: {
  [thing: string]: { path: string; field: string; body: object; asText?: (name: string) => string }
} = {
  organization: { path: '/api/orgs', field: 'name', body: { slug: 'new-org' } },
  'renamed organization': { path: '/api/org/rename', field: 'name', body: {} },
  site: { path: '/api/sites', field: 'name', body: { siteId: 'shop' } },
  'site id': { path: '/api/sites', field: 'siteId', body: {} },
  key: { path: '/api/keys', field: 'label', body: { kind: 'ingest' } },
  endpoint: { path: '/api/webhooks/endpoints', field: 'label', body: { url: 'https://example.com/' } },
  'endpoint of the gateway': {
    path: '/v1/webhooks/endpoints',
    field: 'label',
    body: { url: 'https://example.com/' },
  },
  'alert rule': {
    path: '/v1/webhooks/rules',
    field: 'name',
    body: { kind: 'measure', measure: 'count', condition: { kind: 'above', value: 1 }, windowMinutes: 5 },
  },
  'saved view': { path: '/api/views', field: 'name', body: { search: '?type=a' } },
  'share link': {
    path: '/api/share-links',
    field: 'name',
    body: { page: 'analytics', search: '?range=24h', days: 7 },
  },
  invitation: {
    path: '/api/invitations',
    field: 'email',
    body: { role: 'viewer' },
    asText: (name) => `${name}@example.com`,
  },
}

test.each(Object.entries(namedThings))('%s', async (_thing, thing) => {
  const { path, field, body, asText = (name: string) => name } = thing
  const post = (name: string) => {
    const payload = { ...body, [field]: asText(name) }
    return path.startsWith('/v1/')
      ? server.call(path, { key: secret, body: payload })
      : owner.post(path, payload)
  }
  for (const name of unseen) {
    const response = await post(name)
    const { issues } = (await response.json()) as { issues?: { path: string }[] }
    expect([name, response.status, issues?.[0]?.path]).toEqual([name, 400, field])
  }
  if (field === 'email') return
  const statuses: number[] = []
  for (const [index, name] of visibleNames.entries()) {
    if ('slug' in body) body.slug = `org-${index}`
    statuses.push((await post(name)).status)
  }
  expect(statuses.filter((status) => status >= 400)).toEqual([])
})

test('the command line and the set-up file refuse them as well', async () => {
  using folder = tempDir('names')
  await using appliance: Appliance = await startAppliance()
  const commands = (name: string): string[][] => [
    ['org', 'create', '--name', name, '--slug', 'acme'],
    ['org', 'rename', '--org', 'default', '--name', name],
    ['key', 'create', '--kind', 'ingest', '--org', 'default', '--label', name],
    ['site', 'change', 'shop', '--org', 'default', '--name', name],
    ['webhook', 'add', 'https://example.com/', '--org', 'default', '--label', name],
    ['account', 'invite', '--email', `a${name}@example.com`, '--org', 'default', '--role', 'viewer'],
  ]
  const name = 'Ac\u200bme'
  for (const args of commands(name)) {
    const { code, stderr } = await appliance.cli(...args)
    expect([args.slice(0, 2), code, stderr]).toEqual([
      args.slice(0, 2),
      expect.any(Number),
      expect.stringContaining('U+200B'),
    ])
    expect(code).not.toBe(0)
  }
  const org = '[[organizations]]\nslug = "acme"\n'
  const hash = '0'.repeat(64)
  const tables = {
    organization: `${org}name = "${name}"\n`,
    site: `${org}[[organizations.sites]]\nid = "shop"\nname = "${name}"\n`,
    'site id': `${org}[[organizations.sites]]\nid = "${name}"\n`,
    key: `${org}[[organizations.keys]]\nkind = "ingest"\nlabel = "${name}"\nhash = "${hash}"\n`,
    endpoint: `${org}[[organizations.endpoints]]\nlabel = "${name}"\nurl = "https://example.com/"\n`,
    alert: `${org}[[organizations.alerts]]\nname = "${name}"\nendpoint = "a"\n`,
  }
  for (const [thing, text] of Object.entries(tables)) {
    const path = folder.join(`${thing.replace(' ', '-')}.toml`)
    writeFileSync(path, text)
    const { code, stderr } = await appliance.cli('setup', path)
    expect([thing, code === 0, stderr]).toEqual([thing, false, expect.stringContaining('U+200B')])
  }
  const started = await startAppliance({
    args: ['--oidc-name', name, '--oidc-issuer', 'https://id.example'],
  }).catch(String)
  expect(started).toContain('U+200B')
})
