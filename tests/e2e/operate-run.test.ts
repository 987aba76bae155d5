/** A running appliance: doctor, a changed log level, and repeated SIGTERM without loss. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Diagnosis } from '../../server/operations/doctor/check.ts'
import { cli, startAppliance, type Appliance } from '../support/binary.ts'
import { event } from '../support/events.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'
import { terminateUnderLoad } from './operate-terminate.ts'

setDefaultTimeout(120_000)

let dir: TempDir
beforeAll(() => void (dir = tempDir('run')))
afterAll(() => dir.remove())

async function doctor(dataDir: string, ...args: string[]): Promise<{ code: number } & Diagnosis> {
  const { code, stdout } = await cli(['doctor', '--json', ...args], { dataDir })
  return { code, ...(JSON.parse(stdout) as Diagnosis) }
}

const check = ({ checks }: Diagnosis, id: string) => checks.find((finding) => finding.id === id)

test('the doctor passes beside a server and alone; warnings exit with 0, failures with 1', async () => {
  const dataDir = dir.join('well')
  const appliance = await startAppliance({ dataDir })
  await appliance.cli('backup', 'create')
  const beside = await doctor(dataDir)
  expect([beside.code, beside.ok]).toEqual([0, true])
  for (const id of [
    'folder',
    'files',
    'database',
    'schema',
    'wal',
    'clock',
    'keys',
    'backup',
    'tls',
    'server-store',
    'server-jobs',
    'outbound',
  ])
    expect([id, check(beside, id)?.status]).toEqual([id, 'ok'])
  await appliance.stop()
  const alone = await doctor(dataDir, '--listen', '0.0.0.0:7400')
  expect([alone.code, check(alone, 'tls')?.status, check(alone, 'server-store')]).toEqual([
    0,
    'warning',
    undefined,
  ])
  chmodSync(join(dataDir, 'secret.key'), 0o644)
  expect(check(await doctor(dataDir), 'files')).toMatchObject({
    status: 'warning',
    detail: expect.stringContaining('secret.key'),
  })
  chmodSync(dataDir, 0o755)
  const open = await doctor(dataDir, '--trusted-proxy', '0.0.0.0/0')
  expect([open.code, check(open, 'folder')?.status, check(open, 'proxy')?.status]).toEqual([
    1,
    'failure',
    'failure',
  ])
  chmodSync(dataDir, 0o700)
  writeFileSync(join(dataDir, 'sightglass.db'), Buffer.alloc(8_192, 1))
  const broken = await doctor(dataDir)
  expect([broken.code, check(broken, 'database')?.status]).toEqual([1, 'failure'])
  expect(await doctor(dir.join('absent'))).toMatchObject({ code: 1, ok: false })
  const text = await cli(['doctor'], { dataDir: dir.join('absent') })
  expect(text.stdout).toMatch(
    /^FAILURE {2}folder: There is no data in .* -> set the folder with --data-dir\n$/,
  )
})

test('the doctor lists the hosts that the server called: none, then the receiver of a webhook', async () => {
  const got = Promise.withResolvers<void>()
  await using receiver = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch() {
      got.resolve()
      return new Response('thanks')
    },
  })
  const dataDir = dir.join('calling')
  const args = ['--webhook-allow=127.0.0.0/8', '--dispatch-cron=* * * * * *']
  await using appliance = await startAppliance({ dataDir, args })
  expect(check(await doctor(dataDir), 'outbound')?.detail).toBe(
    'No outgoing connection since the server started.',
  )
  expect((await appliance.cli('webhook', 'test', `http://127.0.0.1:${receiver.port}/in`)).code).toBe(0)
  await got.promise
  const { status, detail } = check(await doctor(dataDir), 'outbound')!
  expect([status, detail]).toEqual([
    'ok',
    `Outgoing connections since the server started: webhook 127.0.0.1 port ${receiver.port}, 1 time.`,
  ])
})

test('a leaked key is a failure that names the remedy', async () => {
  await using appliance = await startAppliance({ dataDir: dir.join('leaked') })
  const { key } = JSON.parse(
    (await appliance.cli('key', 'create', '--kind', 'ingest', '--label', 'x', '--json')).stdout,
  )
  expect(await post(appliance, key, [event('a')], { origin: 'https://shop.example' })).toBe(403)
  expect(check(await doctor(appliance.dataDir), 'keys')).toMatchObject({
    status: 'failure',
    hint: expect.stringContaining('rotate'),
  })
})

test('the log level can be changed while the server runs', async () => {
  await using appliance = await startAppliance({ dataDir: dir.join('level'), args: ['--log-level', 'error'] })
  await fetch(`${appliance.url}/healthz`)
  expect(appliance.stderr()).not.toContain('"event":"request"')
  const changed = await appliance.cli('log-level', 'debug', '--json')
  expect(JSON.parse(changed.stdout)).toEqual({ before: 'error', level: 'debug' })
  await fetch(`${appliance.url}/healthz`)
  for (
    const deadlineMs = performance.now() + 5_000;
    !appliance.stderr().includes('"event":"request"');
    await Bun.sleep(20)
  )
    if (performance.now() > deadlineMs) throw new Error('no request in the log')
  expect((await appliance.cli('log-level', 'loud')).code).toBe(2)
  await appliance.stop()
  const { code, stderr } = await cli(['log-level', 'info'], { dataDir: appliance.dataDir })
  expect([code, stderr]).toEqual([1, expect.stringContaining('No server runs')])
})

async function post(
  appliance: Appliance,
  key: string,
  events: unknown[],
  extraHeaders: Record<string, string> = {},
): Promise<number> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...extraHeaders }
  const answer = await fetch(`${appliance.url}/v1/sdk/events`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ events }),
  })
  return answer.status
}

const rounds = 10

test('SIGTERM under load, repeated, exits with 0 and loses no acknowledged event', async () => {
  const { codes, acknowledged, lost } = await terminateUnderLoad(dir.join('terminated'), rounds)
  expect(codes).toEqual(Array.from({ length: rounds }, () => 0))
  expect(lost).toBe(0)
  expect(acknowledged).toBeGreaterThan(rounds)
})
