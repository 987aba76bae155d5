/** Backups and restores with the executable: beside a server under load, on another machine, interrupted by kill -9. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { cpSync, existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { binaryPath, cli, startAppliance, type Exit } from '../support/binary.ts'
import { event } from '../support/events.ts'
import { run } from '../support/process.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(90_000)

let dir: TempDir
beforeAll(() => void (dir = tempDir('operate')))
afterAll(() => dir.remove())

async function json(
  args: string[],
  options: Parameters<typeof cli>[1] = {},
): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await cli([...args, '--json'], options)
  expect([args[0], code, stderr]).toEqual([args[0], 0, ''])
  return JSON.parse(stdout) as Record<string, unknown>
}

async function makeKey(kind: string, dataDir: string): Promise<string> {
  return String((await json(['key', 'create', '--kind', kind, '--label', kind], { dataDir }))['key'])
}

/** A folder with 2,000 events and their backup, and 100 events after it. The backup has the secret key. */
async function filled(name: string): Promise<{ dataDir: string; backup: string; secretKey: string }> {
  const dataDir = dir.join(name)
  await using appliance = await startAppliance({ dataDir })
  const key = await makeKey('ingest', dataDir)
  const secretKey = await makeKey('secret', dataDir)
  for (let offset = 0; offset < 2_000; offset += 500)
    await post(appliance.url, key, batch(`e${offset}_`, 500))
  const { path } = await json(['backup', 'create'], { dataDir })
  await post(appliance.url, key, batch('late', 100))
  return { dataDir, backup: String(path), secretKey }
}

const batch = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, index) => event(`${prefix}${index}`))

async function post(url: string, key: string, events: unknown[]): Promise<number> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const answer = await fetch(`${url}/v1/sdk/events`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ events }),
  })
  expect(answer.status).toBe(202)
  return ((await answer.json()) as { accepted: number }).accepted
}

/** The counts of the gateway, from a server started on the folder, which knows this key or gets one. */
async function countIn(dataDir: string, secretKey?: string): Promise<number> {
  await using appliance = await startAppliance({ dataDir })
  const key = secretKey ?? (await makeKey('secret', dataDir))
  const headers = { authorization: `Bearer ${key}` }
  const since = '?since=2020-01-01'
  const answer = await fetch(`${appliance.url}/v1/metrics${since}`, { headers })
  return ((await answer.json()) as { total: number }).total
}

test('a backup under full ingest delays no acknowledgement and restores with every listed event', async () => {
  const dataDir = dir.join('loaded')
  const appliance = await startAppliance({ dataDir })
  const { key } = await json(['key', 'create', '--kind', 'ingest', '--label', 'load'], { dataDir })
  let sentCount = 0
  let latencies: number[] = []
  let stop = false
  const sender = async (number: number) => {
    for (let round = 0; !stop; round++) {
      const startMs = performance.now()
      const accepted = await post(appliance.url, String(key), batch(`s${number}r${round}i`, 100))
      sentCount += accepted
      latencies.push(performance.now() - startMs)
    }
  }
  const senders = Array.from({ length: 6 }, (_, number) => sender(number))
  await until(() => latencies.length >= 100) // batches of 100 events
  const aloneMs = Math.max(...latencies)
  const boundMs = Math.max(250, 3 * aloneMs) // on a busy machine everything waits, backup or not
  let backupAnswer: Record<string, unknown> = {}
  let countBefore = 0
  let worstMs = Infinity
  // Other load may delay what a backup does not. A delay by the backup itself comes with each of them.
  for (let times = 0; times < 5 && worstMs >= boundMs; times++) {
    latencies = []
    countBefore = sentCount
    backupAnswer = await json(['backup', 'create'], { dataDir })
    expect(latencies.length).toBeGreaterThan(senders.length)
    worstMs = Math.max(...latencies)
  }
  stop = true
  await Promise.all(senders)
  expect(worstMs).toBeLessThan(boundMs)
  expect(Number(backupAnswer['events'])).toBeGreaterThanOrEqual(countBefore)
  expect(Number(backupAnswer['events'])).toBeLessThanOrEqual(sentCount)
  await appliance.stop()

  const path = String(backupAnswer['path'])
  const moved = dir.join('moved.backup')
  cpSync(path, moved)
  expect(await json(['backup', 'verify', moved])).toMatchObject({
    ok: true,
    sha256: backupAnswer['sha256'],
    opened: true,
  })
  const elsewhere = dir.join('elsewhere')
  expect(await json(['restore', moved], { dataDir: elsewhere })).toMatchObject({
    events: backupAnswer['events'],
    replaced: null,
  })
  expect(await json(['verify'], { dataDir: elsewhere })).toMatchObject({ ok: true, faults: [] })
  expect(await countIn(elsewhere)).toBe(Number(backupAnswer['events']))
})

test('a restore is refused while a server uses the folder', async () => {
  await using appliance = await startAppliance({ dataDir: dir.join('held') })
  const { path } = await json(['backup', 'create'], { dataDir: appliance.dataDir })
  const refused = await cli(['restore', String(path), '--yes'], { dataDir: appliance.dataDir })
  expectLine(refused, /in use by process/)
  expectLine(await cli(['migrate', 'up'], { dataDir: appliance.dataDir }), /in use by process/)
  expect((await fetch(`${appliance.url}/readyz`)).status).toBe(200)
})

test('kill -9 anywhere in a restore leaves the old data, the new data, or a folder that says what to do', async () => {
  const { dataDir, backup, secretKey } = await filled('killed')
  const restoreIn = (folder: string) => {
    cpSync(dataDir, folder, { recursive: true })
    const command = [binaryPath, 'restore', backup, '--yes', '--data-dir', folder]
    return run(command, { cwd: dir.path, env: {} })
  }
  // Shares of its duration spread the kills over a restore, on quick and on slow machines.
  const whole = restoreIn(dir.join('whole'))
  const startMs = performance.now()
  expect(await whole.exited).toBe(0)
  const wholeMs = performance.now() - startMs
  for (const share of [0.2, 0.45, 0.7, 0.95]) {
    const folder = dir.join(`killed-${share}`)
    const child = restoreIn(folder)
    const afterMs = share * wholeMs
    await Promise.race([child.exited, Bun.sleep(afterMs)])
    child.signal('SIGKILL')
    await child.exited
    if (existsSync(join(folder, 'restore-unfinished'))) {
      expectLine(await cli(['org', 'list'], { dataDir: folder }), /restore/)
    } else {
      expect([2_000, 2_100]).toContain(await countIn(folder, secretKey))
      expect(await json(['verify'], { dataDir: folder })).toMatchObject({ ok: true })
    }
    await json(['restore', backup, '--yes'], { dataDir: folder })
    expect(await countIn(folder, secretKey)).toBe(2_000)
    expect(readdirSync(folder)).not.toContain('.restoring')
  }
})

test('no verb and no server opens a folder in the middle of a restore', async () => {
  const { dataDir, backup } = await filled('middle')
  const marker = join(dataDir, 'restore-unfinished')
  writeFileSync(marker, JSON.stringify({ kind: 'restore', phase: 'exchanging', there: [], names: [] }))
  const reading = ['org list', 'export traces', 'verify', 'backup create', 'migrate status', 'account list']
  for (const words of [...reading, 'migrate up', 'serve --listen 127.0.0.1:0'])
    expectLine(
      await cli(words.split(' '), { dataDir }),
      /a restore .* has not finished: .*restore --undo.* or run the restore again\n$/,
    )
  expect((await cli(['doctor'], { dataDir })).stdout).toMatch(
    /FAILURE +database: .*has not finished.*-> complete what was begun, or undo it\n/,
  )
  await json(['restore', backup, '--yes'], { dataDir })
  expect(existsSync(marker)).toBe(false)
  expect(await json(['verify'], { dataDir })).toMatchObject({ ok: true })
})

test('the passphrase comes from the environment or a file and is stored nowhere', async () => {
  const dataDir = dir.join('sealed')
  const env = { SIGHTGLASS_BACKUP_PASSPHRASE: 'correct horse battery' }
  await using appliance = await startAppliance({ dataDir, env })
  // Backups that the command line requests use the server's passphrase.
  const backupAnswer = await json(['backup', 'create'], { dataDir })
  expect(backupAnswer).toMatchObject({ encrypted: true })
  await appliance.stop()
  const path = String(backupAnswer['path'])
  expect(await json(['backup', 'verify', path], { env })).toMatchObject({ ok: true, opened: true })
  expect(await json(['backup', 'verify', path])).toMatchObject({ ok: true, opened: false })
  const file = dir.join('passphrase.txt')
  await Bun.write(file, 'correct horse battery\n')
  const restored = dir.join('unsealed')
  await json(['restore', path], { dataDir: restored, env: { SIGHTGLASS_BACKUP_PASSPHRASE_FILE: file } })
  expect(existsSync(join(restored, 'secret.key'))).toBe(true)
  expectLine(await cli(['restore', path], { dataDir: dir.join('no') }), /encrypted. Provide its passphrase/)
  for (const text of [appliance.stderr(), appliance.stdout(), (await cli(['config'], { env })).stdout])
    expect(text).not.toContain('correct horse')
})

test('wrong usage and missing files give one line each', async () => {
  const { code, stderr } = await cli(['backup', 'verify'])
  expect([code, stderr.split('\n').length]).toEqual([2, 2])
  expect((await cli(['restore'], { dataDir: dir.join('none') })).code).toBe(2)
  expectLine(
    await cli(['restore', dir.join('absent.backup')], { dataDir: dir.join('none') }),
    /cannot be read/,
  )
  expectLine(await cli(['backup', 'create'], { dataDir: dir.join('none') }), /There is no data/)
  expect(existsSync(dir.join('none'))).toBe(false)
  expect(await json(['backup', 'list'], { dataDir: dir.join('none') })).toMatchObject({ backups: [] })
})

function expectLine({ code, stdout, stderr }: Exit, saying: RegExp): void {
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr).toMatch(/^sightglass: [^\n]+\n$/)
  expect(stderr).toMatch(saying)
}
