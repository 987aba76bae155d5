/** Nodes of one PostgreSQL database: the same data from each, commands without a server, and clear refusals. */
import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { cli, startAppliance } from '../support/binary.ts'
import { event } from '../support/events.ts'
import { database } from '../support/postgres.ts'
import { tempDir } from '../support/temp-dir.ts'

/** Asks every 20 ms. Nodes know of each other's changes within 1 s. */
async function eventually(holds: () => Promise<boolean>, condition: string): Promise<void> {
  for (const endMs = performance.now() + 10_000; !(await holds());) {
    if (performance.now() > endMs) throw new Error(`not in time: ${condition}`)
    await Bun.sleep(20)
  }
}

test('what one node stores the other reads, and a revoked key is refused by both', async () => {
  using dir = tempDir('nodes')
  const { url } = await database()
  writeFileSync(dir.join('keys'), '11'.repeat(32), { mode: 0o600 })
  const env = { SIGHTGLASS_DATABASE: url, SIGHTGLASS_KEY_FILE: dir.join('keys') }
  const node = (name: string) => startAppliance({ dataDir: dir.join(name), env, args: ['--node-name', name] })
  await using firstNode = await node('one')
  await using two = await node('two')
  const ingestKey = JSON.parse(
    (await firstNode.cli('key', 'create', '--kind', 'ingest', '--label', 'in', '--json')).stdout,
  )
  const accepted = new Set<string>()
  async function send(base: string, id: string): Promise<number> {
    const { status } = await fetch(`${base}/v1/sdk/events`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ingestKey.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ events: [event(id)] }),
    })
    if (status < 300) accepted.add(id)
    return status
  }
  expect(await send(firstNode.url, 'evt_one')).toBeLessThan(300)
  await eventually(async () => (await send(two.url, 'evt_two')) < 300, 'the other node knows the key')
  const reader = JSON.parse(
    (await two.cli('key', 'create', '--kind', 'secret', '--label', 'out', '--json')).stdout,
  )
  const traces = async (base: string) => {
    const answer = await fetch(`${base}/v1/traces`, { headers: { authorization: `Bearer ${reader.key}` } })
    const { events = [] } = (await answer.json()) as { events?: { id: string }[] }
    return events.map(({ id }) => id).toSorted()
  }
  await eventually(
    async () => (await traces(firstNode.url)).length === 2,
    'the first node knows the other key',
  )
  expect([await traces(firstNode.url), await traces(two.url)]).toEqual([
    ['evt_one', 'evt_two'],
    ['evt_one', 'evt_two'],
  ])
  expect((await two.cli('key', 'revoke', ingestKey.id)).code).toBe(0)
  await eventually(
    async () => (await send(firstNode.url, 'evt_late')) === 401,
    'the other node refuses the key',
  )
  const doctor = await cli(['doctor', '--json'], { dataDir: dir.join('one'), env })
  const checks = JSON.parse(doctor.stdout).checks as { id: string; status: string; detail: string }[]
  expect(checks.find(({ id }) => id === 'database')).toMatchObject({ status: 'ok' })
  // Servers of tests do not sync their files.
  expect(checks.filter(({ status }) => status === 'failure').map(({ id }) => id)).toEqual([
    'database-durability',
  ])
  expect(checks.find(({ id }) => id === 'nodes')).toMatchObject({
    status: 'ok',
    detail: expect.stringContaining('2 nodes run'),
  })
  expect(checks.find(({ id }) => id === 'backup')).toMatchObject({
    hint: expect.stringContaining('pg_dump'),
  } as never)
  expect([(await firstNode.stop()).code, (await two.stop()).code]).toEqual([0, 0])
  // Without a server the commands open the database themselves.
  const alone = { dataDir: dir.join('three'), env }
  expect(JSON.parse((await cli(['key', 'list', '--json'], alone)).stdout).keys).toHaveLength(2)
  const verdict = await cli(['verify', '--json'], alone)
  expect([verdict.code, JSON.parse(verdict.stdout).events.orgs[0].events]).toEqual([0, accepted.size])
  const backup = await cli(['backup', 'create'], alone)
  expect([backup.code, backup.stderr]).toEqual([1, expect.stringContaining('pg_dump')])
  const status = await cli(['migrate', 'status', '--json'], alone)
  expect(JSON.parse(status.stdout).state).toBe('current')
}, 120_000)

test('a node lets its heap grow larger than a server with a data folder does, unless told otherwise', async () => {
  using dir = tempDir('options')
  const { url } = await database('migrated')
  const env = { SIGHTGLASS_DATABASE: url, SIGHTGLASS_KEY_RING: '11'.repeat(32) }
  const size = 'BUN_JSC_forceRAMSize'
  const growth = 'BUN_JSC_smallHeapGrowthFactor'
  const byDefault = `BUN_JSC_largeHeapSize=${8 * 1024 * 1024}`
  const readers = `BUN_JSC_smallHeapSize=${8 * 1024 * 1024}`
  const variablesOf = async (name: string, environment: { [name: string]: string }, args: string[] = []) => {
    const options = { dataDir: dir.join(name), env: { ...env, ...environment }, args, restarts: true }
    await using node = await startAppliance(options)
    const variables = readFileSync(`/proc/${node.pid}/environ`, 'utf8').split('\0')
    return variables.filter((variable) => /^(BUN_JSC|MIMALLOC)_/.test(variable)).toSorted()
  }
  const purge = ['MIMALLOC_PURGE_DELAY=1000', 'MIMALLOC_PURGE_HOLES_MIN_INTERVAL=1000']
  expect(await variablesOf('one', {})).toEqual([
    `${size}=805306368`,
    byDefault,
    `${growth}=3`,
    readers,
    ...purge,
  ])
  expect(await variablesOf('two', { [growth]: '2' })).toEqual([
    `${size}=805306368`,
    byDefault,
    `${growth}=2`,
    readers,
    ...purge,
  ])
  const small = await variablesOf('three', {}, ['--memory-limit', '700MiB'])
  expect(small).toEqual([`${size}=402653184`, byDefault, `${growth}=1.8`, readers, ...purge])
}, 60_000)

test('a node of one role serves only that, and leaves the jobs to the others', async () => {
  using dir = tempDir('roles')
  const { url } = await database('migrated')
  const env = { SIGHTGLASS_DATABASE: url, SIGHTGLASS_KEY_RING: '11'.repeat(32) }
  const node = (role: string) =>
    startAppliance({ dataDir: dir.join(role), env, args: ['--node-name', role, '--node-role', role] })
  await using jobs = await node('jobs')
  await using ingest = await node('ingest')
  await using web = await node('web')
  const ingestKey = JSON.parse(
    (await jobs.cli('key', 'create', '--kind', 'ingest', '--label', 'in', '--json')).stdout,
  )
  const statusOf = async (base: string, path: string, init?: RequestInit) =>
    (await fetch(`${base}${path}`, init)).status
  const send = (base: string, id: string) =>
    statusOf(base, '/v1/sdk/events', {
      method: 'POST',
      headers: { authorization: `Bearer ${ingestKey.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ events: [event(id)] }),
    })
  await eventually(async () => (await send(ingest.url, 'evt_1')) < 300, 'the node knows the key')
  expect(await send(jobs.url, 'evt_2')).toBe(404)
  for (const { url: base } of [jobs, ingest, web]) expect(await statusOf(base, '/readyz')).toBe(200)
  const pages = await Promise.all([jobs, ingest, web].map((appliance) => statusOf(appliance.url, '/sign-in')))
  expect(pages).toEqual([404, 404, 200])
  const alone = await cli(['serve', '--node-role', 'web'], { dataDir: dir.join('own') })
  expect([alone.code, alone.stderr]).toEqual([2, expect.stringContaining('--node-role web needs --database')])
}, 120_000)

test('a shared database needs a key ring and a data folder without a database', async () => {
  using dir = tempDir('nodes')
  const { url } = await database('migrated')
  const serve = (env: Record<string, string>) =>
    cli(['serve', '--listen', '127.0.0.1:0'], { dataDir: dir.join('data'), env, timeoutMs: 10_000 })
  const bare = await serve({ SIGHTGLASS_DATABASE: url })
  expect([bare.code, bare.stderr]).toEqual([2, expect.stringContaining('--database needs the key ring')])
  const wrong = await serve({ SIGHTGLASS_DATABASE: 'mysql://secret@example.com/a' })
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.not.stringContaining('secret@')])
  expect((await cli(['org', 'create', '--name', 'Own'], { dataDir: dir.join('data') })).code).toBe(0)
  const mixed = await serve({ DATABASE_URL: url, SIGHTGLASS_KEY_RING: '11'.repeat(32) })
  expect([mixed.code, mixed.stderr]).toEqual([1, expect.stringContaining('a database of its own')])
  const failure = await cli(['key', 'list'], {
    dataDir: dir.join('other'),
    env: { SIGHTGLASS_DATABASE: 'postgres://nobody@127.0.0.1:1/none', SIGHTGLASS_KEY_RING: '11'.repeat(32) },
  })
  expect([failure.code, failure.stderr]).toEqual([1, expect.stringMatching(/^sightglass: [^\n]+\n/)])
}, 60_000)
