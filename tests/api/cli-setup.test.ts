/** The setup file: at start, by its verb, a second time, after people changed things, and when it is invalid. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, writeFileSync } from 'node:fs'
import { newApiKey, newSigningSecret, sha256Hex } from '../../server/ids.ts'
import { cli, startAppliance, type Appliance } from '../support/binary.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(60_000)
const ingest = newApiKey('ingest')
const secret = newApiKey('secret')
const file = (extraLines = '') => `
[[organizations]]
slug = "acme"
name = "Acme Shops"
[[organizations.sites]]
id = "shop"
name = "The shop"
restricted = true
[[organizations.keys]]
kind = "ingest"
label = "backend"
hash = "${sha256Hex(ingest)}"
prefix = "${ingest.slice(0, 16)}"
sites = ["shop"]
[[organizations.keys]]
kind = "secret"
label = "warehouse"
hash = "${sha256Hex(secret)}"
[[organizations.endpoints]]
label = "alerts"
url = "http://127.0.0.1:9/in"
types = ["authz.*"]
secretFile = "hook.secret"
${extraLines}`

const alert = (value = 100) => `
[[organizations.alerts]]
name = "Many refused"
endpoint = "alerts"
measure = "share"
filter = { type = ["agent.requested"], siteId = "shop" }
of = { outcome = "blocked" }
condition = { kind = "above", value = ${value / 1_000} }
windowMinutes = 30
`

interface Change {
  kind: string
  did: string
  note: string | null
}
const setup = async (appliance: Appliance, path: string, ...flags: string[]) => {
  const { code, stdout, stderr } = await appliance.cli('setup', path, '--json', ...flags)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return (JSON.parse(stdout) as { changes: Change[] }).changes
}
const auditRows = async (appliance: Appliance): Promise<{ actor: string; action: string }[]> => {
  const orgs = ['acme', 'org_system'].map((org) => appliance.cli('export', 'audit', '--org', org, '--json'))
  return (await Promise.all(orgs)).flatMap(({ stdout }) => JSON.parse(stdout || '{"entries":[]}').entries)
}

test('everything in the file exists at the first request, once; later changes by people stay', async () => {
  using temp = tempDir('setup')
  const path = temp.join('setup.toml')
  const dataDir = temp.join('data')
  writeFileSync(temp.join('hook.secret'), newSigningSecret())
  writeFileSync(path, file())
  const args = ['--setup-file', path, '--webhook-allow', '127.0.0.0/8']
  await using appliance = await startAppliance({ dataDir, args })
  const event = {
    id: 'evt_1',
    siteId: 'shop',
    sessionId: 's',
    occurredAt: '2026-06-23T12:00:00Z',
    type: 'agent.detected',
    outcome: 'success',
  }
  const response = await fetch(`${appliance.url}/v1/sdk/events`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ingest}`, 'content-type': 'application/json' },
    body: JSON.stringify({ events: [event] }),
  })
  expect([response.status, await response.json()]).toEqual([202, { ok: true, accepted: 1, deduped: 0 }])
  const traces = await fetch(`${appliance.url}/v1/traces`, { headers: { authorization: `Bearer ${secret}` } })
  expect(await traces.json()).toMatchObject({ events: [{ id: 'evt_1' }] })

  const rows = await auditRows(appliance)
  const actions = ['ingest_key.created', 'secret_key.created', 'site.changed', 'webhook_endpoint.created']
  for (const action of actions)
    expect(rows.filter((row) => row.action === action)).toMatchObject([{ actor: 'system' }])
  const again = await setup(appliance, path)
  expect(again.map(({ kind, did }) => `${kind} ${did}`)).toEqual([
    'organization unchanged',
    'site unchanged',
    'key unchanged',
    'key unchanged',
    'endpoint unchanged',
  ])

  const changed = file('outcomes = ["blocked"]').replace('label = "backend"', 'label = "relay"')
  writeFileSync(path, changed)
  const dry = await setup(appliance, path, '--dry-run')
  expect(dry.filter(({ did }) => did === 'changed').map(({ kind }) => kind)).toEqual(['key', 'endpoint'])
  expect(await setup(appliance, path)).toEqual(dry)
  expect((await setup(appliance, path)).every(({ did }) => did === 'unchanged')).toBe(true)

  const { keys } = JSON.parse((await appliance.cli('key', 'list', '--org', 'acme', '--json')).stdout) as {
    keys: { id: string; kind: string; label: string }[]
  }
  expect(keys.map(({ label }) => label).sort()).toEqual(['relay', 'warehouse'])
  await appliance.cli('key', 'revoke', keys.find(({ kind }) => kind === 'secret')!.id)
  expect((await setup(appliance, path)).filter(({ did }) => did === 'left')).toMatchObject([
    { kind: 'key', note: expect.stringContaining('revoked') },
  ])
})

test('an invalid file ends the start and names the line; one that conflicts with the data changes nothing', async () => {
  using temp = tempDir('setup')
  const path = temp.join('setup.toml')
  const dataDir = temp.join('data')
  writeFileSync(path, file().replace('restricted = true', 'restricted = 1'))
  writeFileSync(temp.join('hook.secret'), newSigningSecret())
  const refused = await cli(['serve', '--setup-file', path, '--listen', '127.0.0.1:0'], { dataDir })
  expect([refused.code, refused.stderr]).toEqual([
    2,
    `sightglass: ${path}:8: organizations[0].sites[0].restricted: must be true or false\n`,
  ])
  expect(existsSync(dataDir)).toBe(false)
  expect((await cli(['setup', path, '--dry-run'], { dataDir })).code).toBe(2)

  writeFileSync(path, file())
  const dry = await cli(['setup', path, '--dry-run'], { dataDir })
  expect([dry.code, dry.stderr]).toEqual([1, expect.stringContaining('There is no data')])
  expect(existsSync(dataDir)).toBe(false)

  // Its endpoint has a private address, which this server rejects.
  const blocked = await cli(['setup', path], { dataDir })
  expect(blocked.code).toBe(1)
  expect(blocked.stderr).toContain(`${path}:19: organizations[0].endpoints[0]: this URL is not allowed`)
  const { orgs } = JSON.parse((await cli(['org', 'list', '--json'], { dataDir })).stdout) as {
    orgs: { slug: string }[]
  }
  expect(orgs.map(({ slug }) => slug)).toEqual(['default'])
})

test('alert rules of the file are created, changed and deleted with it, and read-only elsewhere', async () => {
  using temp = tempDir('setup')
  const path = temp.join('setup.toml')
  const dataDir = temp.join('data')
  writeFileSync(temp.join('hook.secret'), newSigningSecret())
  writeFileSync(path, file(alert()))
  const args = ['--setup-file', path, '--webhook-allow', '127.0.0.0/8']
  await using appliance = await startAppliance({ dataDir, args })
  const call = async (method: string, route: string, body?: object) => {
    const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
    const response = await fetch(`${appliance.url}/v1/webhooks/${route}`, {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    })
    return { status: response.status, body: (await response.json()) as { [field: string]: unknown } }
  }
  const rules = async () => (await call('GET', 'rules')).body['rules'] as { [field: string]: unknown }[]
  const [rule] = await rules()
  expect(rule).toMatchObject({
    name: 'Many refused',
    kind: 'measure',
    fromFile: true,
    windowMinutes: 30,
    measure: 'share',
    filter: { type: ['agent.requested'], siteId: ['shop'] },
    of: { outcome: ['blocked'] },
    condition: { kind: 'above', value: 0.1 },
  })
  const id = String(rule!['id'])
  expect((await call('PATCH', `rules/${id}`, { windowMinutes: 60 })).status).toBe(409)
  expect((await call('DELETE', `rules/${id}`)).status).toBe(409)
  const until = new Date(Date.now() + 3_600_000).toISOString()
  expect((await call('POST', `rules/${id}/silence`, { until })).status).toBe(200)

  const changes = async () =>
    (await setup(appliance, path)).filter(({ kind }) => kind === 'alert').map(({ did }) => did)
  expect(await changes()).toEqual(['unchanged'])
  writeFileSync(path, file(alert(250)))
  expect(await changes()).toEqual(['changed'])
  expect(await rules()).toMatchObject([{ id, silencedUntil: until, condition: { value: 0.25 } }])
  for (const [wrong, message] of [
    [alert().replace('"share"', '"weight"'), /organizations\[0\]\.alerts\[0\]: measure must be one of/],
    [alert().replace('"alerts"', '"nobody"'), /No endpoint of this organization has the label "nobody"/],
    [alert().replace('windowMinutes', 'windowMinute'), /unknown field; did you mean windowMinutes\?/],
  ] as const) {
    writeFileSync(path, file(wrong))
    const { code, stderr } = await appliance.cli('setup', path)
    expect([code, message.test(stderr), stderr]).toEqual([code === 0 ? 1 : code, true, stderr])
  }
  writeFileSync(path, file())
  expect(await changes()).toEqual(['deleted'])
  expect(await rules()).toEqual([])
})
