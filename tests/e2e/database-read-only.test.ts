/**
 * A PostgreSQL database that an operator or a managed service makes read-only: the node is not ready, refuses events
 * with the reason, loses none that it acknowledged, and works again without a restart.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { cli, startAppliance, type Appliance } from '../support/binary.ts'
import { event } from '../support/events.ts'
import { startPostgres, type Cluster } from '../support/postgres.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'
import { until } from '../support/until.ts'

let cluster: Cluster
let dir: TempDir
let node: Appliance
let ingestKey = ''
let readKey = ''
const env: { [name: string]: string } = {}

beforeAll(async () => {
  cluster = await startPostgres()
  await cluster.sql('CREATE ROLE node LOGIN; GRANT ALL ON DATABASE postgres TO node')
  dir = tempDir('read-only-database')
  writeFileSync(dir.join('keys'), '11'.repeat(32), { mode: 0o600 })
  env['SIGHTGLASS_DATABASE'] = cluster.url.replace('postgres@', 'node@')
  env['SIGHTGLASS_KEY_FILE'] = dir.join('keys')
  node = await startAppliance({ dataDir: dir.join('node'), env })
  const createKey = async (kind: string): Promise<string> => {
    const created = await node.cli('key', 'create', '--kind', kind, '--label', kind, '--json')
    return (JSON.parse(created.stdout) as { key: string }).key
  }
  ingestKey = await createKey('ingest')
  readKey = await createKey('secret')
}, 90_000)
afterAll(async () => {
  await node.stop()
  await cluster.stop()
  dir.remove()
})

function post(id: string): Promise<Response> {
  return fetch(`${node.url}/v1/sdk/events`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ingestKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ events: [event(id)] }),
  })
}

async function storedIds(): Promise<string[]> {
  const response = await fetch(`${node.url}/v1/traces?limit=200`, {
    headers: { authorization: `Bearer ${readKey}` },
  })
  expect(response.status).toBe(200)
  const { events } = (await response.json()) as { events: { id: string }[] }
  return events.map(({ id }) => id).toSorted()
}

async function readiness(): Promise<{ status: number; message: string }> {
  const response = await fetch(`${node.url}/readyz`)
  const { message = '' } = (await response.json()) as { message?: string }
  return { status: response.status, message }
}

/** New sessions get a role's settings, so an operator ends the others. */
async function endSessions(): Promise<void> {
  await cluster.sql(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'node'`)
}

test.each([
  [
    'default_transaction_read_only of the role',
    async () => {
      await cluster.sql('ALTER ROLE node SET default_transaction_read_only = on')
      await endSessions()
    },
    async () => {
      await cluster.sql('ALTER ROLE node RESET default_transaction_read_only')
    },
  ],
  [
    'default_transaction_read_only of the server, which holds for running sessions',
    async () => {
      await cluster.sql('ALTER SYSTEM SET default_transaction_read_only = on')
      await cluster.sql('SELECT pg_reload_conf()')
    },
    async () => {
      await cluster.sql('ALTER SYSTEM RESET default_transaction_read_only')
      await cluster.sql('SELECT pg_reload_conf()')
    },
  ],
])(
  '%s',
  async (name, begin, end) => {
    const id = name.length
    expect((await post(`before-${id}`)).status).toBe(202)
    expect(await readiness()).toEqual({ status: 200, message: '' })
    await begin()
    // A node writes by itself, so that it notices without an event.
    await until(async () => (await readiness()).message.includes('read-only'), 60_000)
    expect(await readiness()).toEqual({
      status: 503,
      message: 'store: the last write failed: the database is read-only',
    })
    const refused = await post(`during-${id}`)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
    expect(await refused.json()).toMatchObject({
      error: 'unavailable',
      message:
        'The database is read-only at the moment. Nothing in this request was stored. Try again in a second.',
    })
    expect(await storedIds()).toContain(`before-${id}`)
    const doctor = await cli(['doctor', '--json'], { dataDir: dir.join('node'), env })
    const { checks } = JSON.parse(doctor.stdout) as { checks: { status: string; detail: string }[] }
    expect(checks).toContainEqual(
      expect.objectContaining({
        status: 'failure',
        detail: expect.stringContaining('the last write failed: the database is read-only'),
      }),
    )
    await end()
    await until(async () => (await readiness()).status === 200, 60_000)
    expect((await post(`during-${id}`)).status).toBe(202)
    expect(await storedIds()).toEqual(expect.arrayContaining([`before-${id}`, `during-${id}`]))
  },
  180_000,
)
