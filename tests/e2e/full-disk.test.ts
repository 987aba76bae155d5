/** A full disk: ingest responds with 507, reads continue, a restart works, and ingest recovers when space is free. */
import { expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { startAppliance, type Appliance } from '../support/binary.ts'
import { event } from '../support/events.ts'
import { tempDir } from '../support/temp-dir.ts'

/** A file system of its own, in memory, of `mebibytes`; unmounted with `using`. */
function smallDisk(mebibytes: number): (Disposable & { path: string }) | null {
  const dir = tempDir('disk')
  const path = dir.join('mount')
  mkdirSync(path)
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'tmpfs', path]).status === 0
  if (!mounted) return null
  return {
    path,
    [Symbol.dispose]() {
      spawnSync('umount', ['-l', path])
      dir.remove()
    },
  }
}

async function mint(appliance: Appliance, kind: string): Promise<string> {
  const keyExit = await appliance.cli(
    'key',
    'create',
    '--org',
    'default',
    '--kind',
    kind,
    '--label',
    kind,
    '--json',
  )
  return (JSON.parse(keyExit.stdout) as { key: string }).key
}

let sentCount = 0
async function post(appliance: Appliance, key: string, count: number): Promise<number> {
  // Random, so that compression does not make the disk look larger than it is.
  const padding = () => Buffer.from(crypto.getRandomValues(new Uint8Array(1_500))).toString('base64')
  const events = Array.from({ length: count }, () => event(`full_${sentCount++}`, { padding: padding() }))
  const response = await fetch(`${appliance.url}/v1/sdk/events`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ events }),
  })
  await response.text()
  return response.status
}

async function eventually(
  readStatus: () => Promise<number>,
  status: number,
  tries: number,
): Promise<number[]> {
  const seenStatuses: number[] = []
  while (seenStatuses.length < tries && seenStatuses.at(-1) !== status) {
    seenStatuses.push(await readStatus())
    await Bun.sleep(seenStatuses.at(-1) === status ? 0 : 20)
  }
  return seenStatuses
}

test('with 0 bytes free, sign-in, reads and exports work and the command line names the problem', async () => {
  using disk = smallDisk(48)
  if (!disk) {
    console.log('not run: this user may not mount a small disk')
    return
  }
  const email = 'ann@example.com'
  const password = 'an open window'
  const env = { SIGHTGLASS_ADMIN_EMAIL: email, SIGHTGLASS_ADMIN_PASSWORD: password }
  const dataDir = `${disk.path}/data`
  let appliance = await startAppliance({ dataDir, env })
  const fill = () => spawnSync('dd', ['if=/dev/zero', `of=${disk.path}/filler-${Math.random()}`, 'bs=4k'])
  const json = { 'content-type': 'application/json' }
  const signIn = async () => {
    const init = { method: 'POST', headers: json, body: JSON.stringify({ email, password }) }
    const response = await fetch(`${appliance.url}/api/sign-in`, init)
    return { status: response.status, cookie: response.headers.get('set-cookie')?.split(';')[0] ?? '' }
  }
  const secret = await mint(appliance, 'secret')
  const lookAndExport = async () => {
    fill() // again each time: another program takes whatever becomes free
    const { status, cookie } = await signIn()
    expect(status).toBe(200)
    expect((await fetch(`${appliance.url}/api/session`, { headers: { cookie } })).status).toBe(200)
    fill()
    const exported = await fetch(`${appliance.url}/v1/audit/export`, {
      method: 'POST',
      headers: { ...json, authorization: `Bearer ${secret}` },
      body: '{}',
    })
    expect(exported.status).toBe(200)
    expect(await exported.text()).toContain('audit.exported')
  }
  await lookAndExport()
  fill()
  const refused = await appliance.cli('webhook', 'secret', '--org', 'default', '--json')
  expect(refused.code).toBe(1)
  expect(JSON.parse(refused.stderr)).toMatchObject({
    error: 'storage_full',
    hint: expect.stringContaining('free disk space'),
  })
  await appliance.stop()
  appliance = await startAppliance({ dataDir })
  await lookAndExport()
  expect((await appliance.stop()).code).toBe(0)
}, 90_000)

test('a full disk gives 507, allows reads and a restart, and ingest recovers when space is free', async () => {
  using disk = smallDisk(64)
  if (!disk) {
    console.log('not run: this user may not mount a small disk')
    return
  }
  const dataDir = `${disk.path}/data`
  const filler = `${disk.path}/filler`
  const ballast = `${disk.path}/ballast` // what somebody can delete later
  writeFileSync(ballast, new Uint8Array(24 * 1024 * 1024))
  let appliance = await startAppliance({ dataDir, args: ['--disk-floor', '8MiB'] })
  const ingest = await mint(appliance, 'ingest')
  const secret = await mint(appliance, 'secret')
  const read = async () =>
    (await fetch(`${appliance.url}/v1/traces?limit=200`, { headers: { authorization: `Bearer ${secret}` } }))
      .status

  const filling = await eventually(() => post(appliance, ingest, 200), 507, 400)
  expect(filling.at(-1)).toBe(507)
  expect(new Set(filling.slice(0, -1))).toEqual(new Set([202]))
  expect(await read()).toBe(200)
  expect((await fetch(`${appliance.url}/readyz`)).status).toBe(503)

  await appliance.stop()
  spawnSync('dd', ['if=/dev/zero', `of=${filler}`, 'bs=64k'])
  appliance = await startAppliance({ dataDir, args: ['--disk-floor', '8MiB'] })
  expect(await read()).toBe(200)
  expect(await post(appliance, ingest, 1)).toBe(507)
  const created = await appliance.cli('key', 'list', '--org', 'default', '--json')
  expect(created.code).toBe(0)

  rmSync(filler)
  rmSync(ballast)
  const returning = await eventually(() => post(appliance, ingest, 1), 202, 500)
  expect(returning.at(-1)).toBe(202)
  expect(new Set(returning.slice(0, -1))).toEqual(new Set([507]))
  expect((await appliance.stop()).code).toBe(0)
}, 90_000)
