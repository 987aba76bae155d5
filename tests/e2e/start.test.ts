/** Starting the executable in any folder and on any data folder: errors are one line with exit code 1. */
import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { binaryPath, cli, startAppliance, type Exit } from '../support/binary.ts'
import { event } from '../support/events.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'
import { until } from '../support/until.ts'

let dir: TempDir
beforeAll(() => void (dir = tempDir('start')))
afterAll(() => dir.remove())

const serve = (dataDir: string, env: Record<string, string> = {}, ...extraArgs: string[]): Promise<Exit> =>
  cli(['serve', '--listen', '127.0.0.1:0', ...extraArgs], { dataDir, env, timeoutMs: 10_000 })

function expectOneLine({ code, stdout, stderr }: Exit, saying: RegExp): void {
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr).toMatch(/^sightglass: [^\n]+\n$/)
  expect(stderr).toMatch(saying)
  expect(stderr).not.toMatch(/\bat \/|\$bunfs|SQLITE_/)
}

test('a first start creates a private folder, prints the address and setup link, and stops cleanly', async () => {
  const dataDir = dir.join('fresh')
  const appliance = await startAppliance({ dataDir })
  const lines = appliance.stdout().split('\n')
  expect(lines[0]).toBe(`sightglass ${appliance.version} listening on ${appliance.url}`)
  expect(await appliance.setupLink()).toMatch(/\/setup#[A-Za-z0-9_-]{43}$/)
  expect(statSync(dataDir).mode & 0o777).toBe(0o700)
  expect(statSync(`${dataDir}/sightglass.db`).mode & 0o777).toBe(0o600)
  expect(statSync(`${dataDir}/control.sock`).mode & 0o777).toBe(0o600)
  const { code } = await appliance.stop()
  expect(code).toBe(0)
  for (const fileName of ['sightglass.db-wal', 'control.sock'])
    expect([fileName, existsSync(`${dataDir}/${fileName}`)]).toEqual([fileName, false])
})

test('the server collects garbage as on a small machine and keeps its process ID', async () => {
  const size = 'BUN_JSC_forceRAMSize'
  const growth = 'BUN_JSC_smallHeapGrowthFactor'
  const large = `BUN_JSC_largeHeapSize=${64 * 1024 * 1024}`
  const readers = `BUN_JSC_smallHeapSize=${8 * 1024 * 1024}`
  const variablesOf = (pid: number) => {
    const variables = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')
    return variables.filter((variable) => variable.startsWith('BUN_JSC_')).toSorted()
  }
  await using byItself = await startAppliance({ restarts: true })
  expect(variablesOf(byItself.pid)).toEqual([`${size}=402653184`, large, `${growth}=1.8`, readers])
  const environment = { [size]: '1073741824', [growth]: '3' }
  await using inPart = await startAppliance({ restarts: true, env: { [size]: environment[size]! } })
  expect(variablesOf(inPart.pid)).toEqual([`${size}=1073741824`, large, `${growth}=1.8`, readers])
  await using asAsked = await startAppliance({ restarts: true, env: environment })
  expect(variablesOf(asAsked.pid)).toEqual([`${size}=1073741824`, large, `${growth}=3`, readers])
})

test('the writer thread has a lower priority than the threads that answer requests', async () => {
  await using appliance = await startAppliance()
  const keyResult = await appliance.cli('key', 'create', '--kind', 'secret', '--label', 'reads', '--json')
  const { key } = JSON.parse(keyResult.stdout) as { key: string }
  // The reader of long reads opens with the first one.
  const read = await fetch(`${appliance.url}/v1/sessions`, { headers: { authorization: `Bearer ${key}` } })
  expect(read.status).toBe(200)
  const tasks = `/proc/${appliance.pid}/task`
  const niceness = (name: string) =>
    readdirSync(tasks)
      .map((id) => readFileSync(`${tasks}/${id}/stat`, 'utf8'))
      .filter((stat) => stat.includes(`(${name})`))
      .map((stat) => Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16]))
  expect(niceness('store writer')).toEqual([3])
  await until(() => niceness('store reader').includes(3))
  expect(niceness('store reader')).toEqual([0, 3])
})

test('a hostile start folder is harmless: .env, bunfig.toml with a preload, read-only', async () => {
  const cwd = dir.join('hostile')
  mkdirSync(cwd)
  writeFileSync(`${cwd}/.env`, 'SIGHTGLASS_LISTEN=0.0.0.0:1\nSIGHTGLASS_DATA_DIR=/nowhere\n')
  writeFileSync(`${cwd}/bunfig.toml`, 'preload = ["./evil.ts"]\n')
  writeFileSync(`${cwd}/evil.ts`, `require('node:fs').writeFileSync('${dir.join('was-here')}', 'x')\n`)
  chmodSync(cwd, 0o500)
  await using appliance = await startAppliance({ cwd, dataDir: dir.join('beside-hostile') })
  expect((await fetch(`${appliance.url}/healthz`)).status).toBe(200)
  expect(existsSync(dir.join('was-here'))).toBe(false)
})

test('a second server on the folder exits and names the first, which continues', async () => {
  const dataDir = dir.join('held')
  await using first = await startAppliance({ dataDir })
  expectOneLine(await serve(dataDir), new RegExp(`in use.*\\b${first.pid}\\b`))
  expect((await fetch(`${first.url}/readyz`)).status).toBe(200)
})

test('a port in use is reported in one line', async () => {
  await using first = await startAppliance({ dataDir: dir.join('port1') })
  const { port } = new URL(first.url)
  const result = await cli(['serve', '--listen', `127.0.0.1:${port}`], { dataDir: dir.join('port2') })
  expectOneLine(result, new RegExp(`127\\.0\\.0\\.1:${port}`))
})

describe('broken data folders are named and left as they are', () => {
  test('not a folder', async () => {
    writeFileSync(dir.join('file'), 'x')
    expectOneLine(await serve(dir.join('file')), /data folder/)
  })

  test('not a database', async () => {
    const garbage = 'this is not a database, it is a letter to somebody\n'.repeat(200)
    mkdirSync(dir.join('garbage'))
    writeFileSync(dir.join('garbage', 'sightglass.db'), garbage)
    expectOneLine(await serve(dir.join('garbage')), /not a database/)
    expect(readFileSync(dir.join('garbage', 'sightglass.db'), 'utf8')).toBe(garbage)
  })

  test('a newer schema', async () => {
    const dataDir = dir.join('newer')
    await (await startAppliance({ dataDir })).stop()
    const db = new Database(`${dataDir}/sightglass.db`)
    const columns = db
      .query<{ name: string }, []>("select name from pragma_table_info('schema_migration')")
      .all()
    const values = columns.map(({ name }) =>
      name === 'version' ? 9_999 : name === 'name' ? "'from the future'" : 1,
    )
    db.run(
      `insert into schema_migration (${columns.map((column) => column.name).join()}) values (${values.join()})`,
    )
    db.run('pragma wal_checkpoint(truncate)')
    db.close()
    const bytesBefore = readFileSync(`${dataDir}/sightglass.db`)
    expectOneLine(await serve(dataDir), /newer/)
    expect(readFileSync(`${dataDir}/sightglass.db`).equals(bytesBefore)).toBe(true)
  })

  test('not writable', async () => {
    // Root ignores permissions, so the folder is where the kernel accepts no files.
    expectOneLine(await serve('/proc/self/sightglass'), /data folder/)
  })
})

test('an invalid admin password stops the start; a valid one creates the owner once', async () => {
  const dataDir = dir.join('admin')
  const admin = (password: string) => ({
    SIGHTGLASS_ADMIN_EMAIL: 'a@example.com',
    SIGHTGLASS_ADMIN_PASSWORD: password,
  })
  expectOneLine(await serve(dataDir, admin('password')), /password/)
  for (let start = 0; start < 2; start++) {
    const appliance = await startAppliance({ dataDir, env: admin('a window in a vessel') })
    expect(appliance.stdout()).not.toContain('/setup#')
    const body = JSON.stringify({ email: 'a@example.com', password: 'a window in a vessel' })
    const headers = { 'content-type': 'application/json' }
    expect((await fetch(`${appliance.url}/api/sign-in`, { method: 'POST', headers, body })).status).toBe(200)
    expect(appliance.stderr()).not.toContain('a window in a vessel')
    await appliance.stop()
  }
})

test('SIGTERM under load: what was acknowledged is stored, the exit code is 0', async () => {
  const dataDir = dir.join('term')
  let acknowledged = 0
  let cut = 0
  let ingest = ''
  let secret = ''
  for (let round = 0; round < 3; round++) {
    const appliance = await startAppliance({ dataDir })
    const mint = async (kind: string) =>
      (
        JSON.parse(
          (
            await appliance.cli(
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
          ).stdout,
        ) as { key: string }
      ).key
    ingest ||= await mint('ingest')
    secret ||= await mint('secret')
    const sender = async (connection: number) => {
      for (let request = 0; ; request++) {
        const body = JSON.stringify({ events: [event(`${round}-${connection}-${request}`)] })
        const headers = { authorization: `Bearer ${ingest}`, 'content-type': 'application/json' }
        const response = await fetch(`${appliance.url}/v1/sdk/events`, {
          method: 'POST',
          headers,
          body,
        }).catch(() => null)
        if (response?.status !== 202) return
        if ((await response.text().catch(() => '')) !== '') acknowledged++
        else cut++
      }
    }
    const senders = [0, 1, 2, 3].map(sender)
    await until(() => acknowledged > 35 * (round + 1))
    const { code, stderr } = await appliance.stop()
    await Promise.all(senders)
    expect(code).toBe(0)
    expect(stderr).not.toContain('"level":"error"')
  }
  await using nextAppliance = await startAppliance({ dataDir })
  let stored = 0
  for (let query: string | null = 'limit=200'; query !== null;) {
    const response = await fetch(`${nextAppliance.url}/v1/traces?${query}`, {
      headers: { authorization: `Bearer ${secret}` },
    })
    const page = (await response.json()) as { events: unknown[]; nextCursor: string | null }
    stored += page.events.length
    query = page.nextCursor && `limit=200&cursor=${page.nextCursor}`
  }
  expect(acknowledged).toBeGreaterThan(100)
  expect(stored).toBeGreaterThanOrEqual(acknowledged)
  expect(stored).toBeLessThanOrEqual(acknowledged + cut + 12) // each sender may have had one answer cut off a round
}, 90_000)

test('the executable needs nothing of its build folder', () => {
  expect(readFileSync(binaryPath).includes(`${import.meta.dir.replace('/tests/e2e', '')}/server/`)).toBe(
    false,
  )
})
