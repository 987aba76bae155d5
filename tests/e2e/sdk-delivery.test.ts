/** The exporter against the executable when things go wrong: kills, outages, hosts that die, wrong certificates. */
import { afterEach, expect, test } from 'bun:test'
import { readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createIntelExporter, init, type IntelExporterOptions, type Problem } from '../../sdk/node.ts'
import { type Appliance, startAppliance } from '../support/binary.ts'
import { run } from '../support/process.ts'
import { tempDir } from '../support/temp-dir.ts'
import { builtPackage, hostEnv, type Keys, makeKeys, storedIds } from './sdk-appliance.ts'

const open: { close(timeoutMs?: number): Promise<unknown> }[] = []
afterEach(async () => {
  for (const client of open.splice(0)) await client.close(0)
})

function host(url: string, keys: Keys, options: Partial<IntelExporterOptions> = {}) {
  const problems: Problem[] = []
  const exporter = createIntelExporter({
    url,
    ingestKey: keys.ingestKey,
    backoffMinMs: 50,
    backoffMaxMs: 500,
    ...options,
  })
  const client = init({
    publishableKey: keys.publishableKey,
    siteId: 'shop',
    sessionId: 'one visitor',
    exporters: [exporter],
    onError: (problem) => problems.push(problem),
  })
  open.push(client)
  return { exporter, client, problems }
}

/** The same folder at the same address, as a supervisor would start it again. */
function restart(appliance: Appliance): Promise<Appliance> {
  const { host: address } = new URL(appliance.url)
  return startAppliance({ dataDir: appliance.dataDir, args: ['--listen', address] })
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('three times kill -9 and restart during 30,000 events: exactly 30,000 distinct events are stored', async () => {
  using dir = tempDir('kills')
  let appliance = await startAppliance({ dataDir: dir.join('data') })
  const keys = await makeKeys(appliance)
  const { client, exporter, problems } = host(appliance.url, keys)
  const count = 30_000
  const killAt = [5_000, 14_000, 24_000]
  const kills = killAt.map(async (stored) => {
    while (exporter.stats().accepted < stored) await Bun.sleep(2)
    await appliance.kill() // in the middle of requests: some are stored and never answered
    appliance = await restart(appliance)
  })
  for (let index = 0; index < count; index++) {
    client.trace({
      id: `e${index}`,
      type: 'tool.executed',
      tool: 'cart.add',
      metadata: { page: `/p/${index % 50}` },
    })
    if (index % 500 === 499) await turn()
  }
  await Promise.all(kills)
  expect(await exporter.flush(40_000)).toBe(true)
  const stats = exporter.stats()
  expect(stats).toMatchObject({ queued: 0, dropped: 0, rejected: 0 })
  expect(stats.accepted + stats.deduped).toBe(count)
  expect(problems.filter(({ code }) => code !== 'unreachable')).toEqual([])
  const ids = await storedIds(appliance.url, keys.secretKey)
  expect(ids.length).toBe(count)
  expect(new Set(ids).size).toBe(count)
  await appliance.stop()
}, 90_000)

test('an outage under load does not slow the host; nothing is lost up to the bound, and the rest is counted', async () => {
  using dir = tempDir('outage')
  const appliance = await startAppliance({ dataDir: dir.join('data') })
  const keys = await makeKeys(appliance)
  const { client, exporter, problems } = host(appliance.url, keys, { queueEventsMax: 20_000 })
  let next = 0
  const traceFor = async (count: number): Promise<number> => {
    const times: number[] = []
    for (let index = 0; index < count; index++) {
      const startedMs = performance.now()
      client.trace({ id: `e${next++}`, type: 'tool.executed', tool: 'cart.add' })
      times.push(performance.now() - startedMs)
      if (index % 100 === 99) await turn()
    }
    return times.sort((left, right) => left - right)[count >> 1] ?? 0
  }
  await traceFor(5_000) // warm
  const calmMs = await traceFor(5_000)
  expect(await exporter.flush()).toBe(true)
  await appliance.kill()
  const outageMs = await traceFor(25_000)
  expect(outageMs).toBeLessThan(3 * calmMs + 0.005)
  expect(exporter.stats()).toMatchObject({ queued: 20_000, dropped: 5_000 })
  const again = await restart(appliance)
  expect(await exporter.flush(20_000)).toBe(true)
  const expected = Array.from({ length: 30_000 }, (_, index) => `e${index}`)
  expect(new Set(await storedIds(again.url, keys.secretKey))).toEqual(new Set(expected))
  const codes = problems.map(({ code }) => code)
  expect(codes.filter((code) => code === 'unreachable').length).toBe(1)
  const droppedCount = problems
    .filter(({ code }) => code === 'queue_full')
    .reduce((sum, { count = 0 }) => sum + count, 0)
  expect(droppedCount).toBe(5_000)
  await again.stop()
}, 90_000)

test.each([
  ['Node.js', 'node'],
  ['Bun', process.execPath],
])(
  '%s: a host killed while the appliance is away loses nothing that it had spooled',
  async (_, runtime) => {
    using dir = tempDir('spool')
    const packageDir = await builtPackage()
    const appliance = await startAppliance({ dataDir: dir.join('data') })
    const keys = await makeKeys(appliance)
    await appliance.kill()
    const program = (first: number, body: string): string => `
import { createIntelExporter, init } from ${JSON.stringify(join(packageDir, 'node.js'))}
const { SIGHTGLASS_URL: url, SIGHTGLASS_INGEST_KEY: ingestKey, SIGHTGLASS_PUBLISHABLE_KEY: publishableKey } =
  process.env
const exporter = createIntelExporter({ url, ingestKey, spool: './spool/events', backoffMaxMs: 200 })
const client = init({ publishableKey, siteId: 'shop', sessionId: 's', exporters: [exporter], onError() {} })
for (let index = 0; index < 3000; index++) client.trace({ id: 'e' + (${first} + index), type: 'tool.executed' })
await new Promise((resolve) => setImmediate(resolve))
${body}`
    for (const [round, first] of [0, 3_000].entries()) {
      const path = dir.join(`host-${round}.mjs`)
      writeFileSync(path, program(first, `console.log('traced'); setInterval(() => {}, 1000)`))
      const child = run([runtime, path], { cwd: dir.path, env: hostEnv(appliance.url, keys) })
      await child.line((line) => (line === 'traced' ? true : null), 10_000)
      child.signal('SIGKILL')
      await child.exited
    }
    const again = await restart(appliance)
    writeFileSync(
      dir.join('host-2.mjs'),
      program(6_000, `console.log(await client.close(20000) ?? 'closed')`),
    )
    const last = run([runtime, dir.join('host-2.mjs')], { cwd: dir.path, env: hostEnv(appliance.url, keys) })
    expect({ code: await last.exited, stderr: last.stderr() }).toEqual({ code: 0, stderr: '' })
    const ids = await storedIds(again.url, keys.secretKey)
    expect(ids.length).toBe(9_000)
    expect(new Set(ids)).toEqual(new Set(Array.from({ length: 9_000 }, (__, index) => `e${index}`)))
    const fileSizes = readdirSync(dir.join('spool')).map((name) => statSync(dir.join('spool', name)).size)
    expect(fileSizes.reduce((sum, bytes) => sum + bytes, 0)).toBeLessThan(200)
    await again.stop()
  },
  60_000,
)

const fakeKeys: Keys = {
  ingestKey: `agtx_ik_${'i'.repeat(32)}`,
  publishableKey: `agtx_pk_${'p'.repeat(32)}`,
  secretKey: `agtx_sk_${'s'.repeat(32)}`,
}

test('a certificate nobody signed: one clear report, no loop', async () => {
  using dir = tempDir('tls')
  const certificateResult = Bun.spawnSync(
    [
      'openssl',
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-days',
      '2',
      '-subj',
      '/CN=localhost',
      '-keyout',
      dir.join('key.pem'),
      '-out',
      dir.join('cert.pem'),
    ],
    { stderr: 'ignore' },
  )
  expect(certificateResult.exitCode).toBe(0)
  const packageDir = await builtPackage()
  let requests = 0
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    tls: { key: Bun.file(dir.join('key.pem')), cert: Bun.file(dir.join('cert.pem')) },
    fetch() {
      requests++
      return new Response('{}')
    },
  })
  const program = `
import { createIntelExporter, init } from ${JSON.stringify(join(packageDir, 'node.js'))}
const { SIGHTGLASS_URL: url, SIGHTGLASS_INGEST_KEY: ingestKey, SIGHTGLASS_PUBLISHABLE_KEY: publishableKey } =
  process.env
const exporter = createIntelExporter({ url, ingestKey, backoffMinMs: 5, intervalMs: 5 })
const onError = ({ code, message }) => console.log(JSON.stringify({ code, message }))
const client = init({ publishableKey, siteId: 'shop', sessionId: 's', exporters: [exporter], onError })
for (let round = 0; round < 20; round++) {
  client.trace({ type: 'a' })
  await new Promise((resolve) => setTimeout(resolve, 10))
}
console.log(JSON.stringify(exporter.stats()))
process.exit(0)`
  writeFileSync(dir.join('host.mjs'), program)
  for (const runtime of ['node', process.execPath]) {
    const env = hostEnv(`https://127.0.0.1:${server.port}`, fakeKeys)
    const child = run([runtime, dir.join('host.mjs')], { cwd: dir.path, env })
    expect(await child.exited).toBe(0)
    const lines = child
      .stdout()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { [name: string]: unknown })
    expect(lines.length).toBe(2)
    expect(lines[0]).toMatchObject({ code: 'refused', message: expect.stringMatching(/TLS check/) })
    expect(lines[1]).toMatchObject({ requests: 1, queued: 20 })
  }
  expect(requests).toBe(0)
  await server.stop(true)
}, 90_000)

test('an address that refuses connections: reported once, retried rarely', async () => {
  const { client, exporter, problems } = host('http://127.0.0.1:9', fakeKeys, { intervalMs: 5 })
  client.trace({ type: 'a' })
  while (problems.length === 0) await Bun.sleep(5)
  await Bun.sleep(1_000)
  expect(problems.map(({ code }) => code)).toEqual(['unreachable'])
  expect(exporter.stats().requests).toBeLessThan(12)
}, 90_000)

test('events that the appliance rejects are named one by one, and the others arrive', async () => {
  await using appliance = await startAppliance()
  const keys = await makeKeys(appliance)
  const { client, exporter, problems } = host(appliance.url, keys, { intervalMs: 60_000 })
  const bad: [string, object][] = [
    ['nul', { tool: 'a\u0000b' }],
    ['lone', { error: 'half \ud800 of a pair' }],
    ['words', { type: 'Not A Type' }],
    ['time', { occurredAt: 'yesterday' }],
    ['kind', { agent: 'GPTBot' }],
  ]
  for (const [id, fields] of bad) {
    client.trace({ id: `good-${id}`, type: 'tool.executed', metadata: { note: 'ünïcode 🙂' } })
    client.trace({ id, type: 'tool.executed', ...fields })
  }
  expect(await exporter.flush()).toBe(true)
  expect(exporter.stats()).toMatchObject({ accepted: 5, rejected: 5, requests: 1 })
  expect(problems.map(({ code, count }) => [code, count])).toEqual([['rejected', 5]])
  expect(new Set(problems[0]?.issues?.map(({ id }) => id))).toEqual(new Set(bad.map(([id]) => id)))
  const ids = await storedIds(appliance.url, keys.secretKey)
  expect(new Set(ids)).toEqual(new Set(bad.map(([id]) => `good-${id}`)))
}, 90_000)

test('a revoked key: one report, and the events wait', async () => {
  await using appliance = await startAppliance()
  const keys = await makeKeys(appliance)
  const { client, exporter, problems } = host(appliance.url, keys, { intervalMs: 5 })
  client.trace({ type: 'a' })
  expect(await exporter.flush()).toBe(true)
  const listed = JSON.parse((await appliance.cli('key', 'list', '--org', 'default', '--json')).stdout) as {
    keys: { id: string; prefix: string }[]
  }
  const { id } = listed.keys.find(({ prefix }) => keys.ingestKey.startsWith(prefix)) ?? { id: '' }
  expect((await appliance.cli('key', 'revoke', id, '--org', 'default', '--json')).code).toBe(0)
  for (let round = 0; round < 30; round++) {
    client.trace({ type: 'a' })
    await Bun.sleep(10)
  }
  expect(problems).toEqual([
    expect.objectContaining({ code: 'refused', status: 401, message: expect.stringMatching(/revoked/) }),
  ])
  expect(exporter.stats()).toMatchObject({ accepted: 1, queued: 30 })
}, 90_000)
