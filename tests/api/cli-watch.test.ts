/** `watch` of the executable: to the appliance of a folder, to one that is away for a while, and what it refuses. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { appendFileSync, writeFileSync } from 'node:fs'
import { binaryPath, cleanEnv, cli, startAppliance, type Appliance } from '../support/binary.ts'
import { run, type Running } from '../support/process.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(60_000)

const files = tempDir('watch')
const dataDir = files.join('data')
let appliance: Appliance

beforeAll(async () => {
  appliance = await startAppliance({ dataDir })
})
afterAll(async () => {
  await appliance.stop()
  files.remove()
})

const line = (page: string): string =>
  `203.0.113.9 - - [23/Nov/2026:10:00:00 +0000] "GET /${page} HTTP/1.1" 200 512 "-" "GPTBot/1.2"\n`

const watch = (...args: string[]): Running =>
  run([binaryPath, 'watch', ...args], { cwd: files.path, env: cleanEnv({}) })

async function until(holds: () => Promise<boolean> | boolean, description: string): Promise<void> {
  for (const endMs = performance.now() + 30_000; !(await holds()); await Bun.sleep(50))
    if (performance.now() > endMs) throw new Error(`${description} did not happen in time`)
}

const hasPage = async (page: string): Promise<boolean> =>
  (await appliance.cli('export', 'traces')).stdout.includes(`"page":"/${page}"`)

test('it says what it understood, refuses a second reader, and prints sums at the end', async () => {
  const log = files.join('access.log')
  writeFileSync(log, line('a') + line('b'))
  const reader = watch(log, '--site', 'shop', '--data-dir', dataDir)
  await reader.line((text) => (text.includes('fits 2 of the first 2 lines') ? text : null), 20_000)
  await until(() => hasPage('b'), 'reading')
  const second = watch(log, '--site', 'shop', '--data-dir', dataDir)
  expect([await second.exited, second.stderr()]).toEqual([
    1,
    `sightglass: Another process reads ${log}. (stop the other one; if it was killed, this log is free after 15 s)\n`,
  ])
  appendFileSync(log, `broken\n${line('c')}`)
  await until(() => hasPage('c'), 'reading on')
  reader.signal('SIGTERM')
  expect(await reader.exited).toBe(0)
  const sums = 'Read 4 lines: 3 stored, 0 already known, 0 by people, 0 excluded, 1 bad.'
  expect(reader.stdout().trimEnd().split('\n').at(-1)).toBe(sums)
  const audit = await appliance.cli('export', 'audit')
  expect(audit.stdout).toContain('access_logs.watched')
})

test('with --to it waits for an appliance that is down, and loses nothing', async () => {
  const log = files.join('remote.log')
  const keyExit = await appliance.cli('key', 'create', '--kind', 'ingest', '--label', 'web1', '--json')
  writeFileSync(files.join('key.txt'), `${(JSON.parse(keyExit.stdout) as { key: string }).key}\n`)
  writeFileSync(log, line('r1'))
  const port = Number(new URL(appliance.url).port)
  const reader = watch(log, '--site', 'web1', '--to', appliance.url, '--key-file', files.join('key.txt'))
  await until(() => hasPage('r1'), 'reading')
  await appliance.kill()
  appendFileSync(log, line('r2'))
  await until(() => reader.stderr() !== '', 'a problem')
  appliance = await startAppliance({ dataDir, port })
  await until(() => hasPage('r2'), 'reading on')
  await until(() => reader.stderr().includes(`${log} is read again`), 'the end of the problem')
  reader.signal('SIGINT')
  expect(await reader.exited).toBe(0)
  expect(reader.stdout()).toEndWith(
    'Read 2 lines: 2 stored, 0 already known, 0 by people, 0 excluded, 0 bad.\n',
  )
  const { stdout } = await appliance.cli('export', 'traces')
  expect(stdout.match(/"type":"agent\.requested".*?"page":"\/r\d"/g)).toHaveLength(2)
})

test('mistakes are one line with what to do', async () => {
  const watchWith = async (...args: string[]): Promise<[number, string]> => {
    const { code, stderr } = await cli(['watch', ...args])
    return [code, stderr]
  }
  expect(await watchWith('--site', 'shop')).toEqual([
    2,
    expect.stringContaining('name a log, such as /var/log/nginx'),
  ])
  expect(await watchWith('a.log')).toEqual([2, expect.stringContaining('needs --site SITE_ID')])
  expect(await watchWith('a.log', '--site', 's', '--to', 'http://127.0.0.1:1')).toEqual([
    2,
    expect.stringContaining('--to needs --key-file FILE with an ingest key'),
  ])
  const missing = files.join('none.txt')
  expect(
    await watchWith('a.log', '--site', 's', '--to', 'http://127.0.0.1:1', '--key-file', missing),
  ).toEqual([2, expect.stringContaining(`--key-file ${missing}: cannot be read (ENOENT)`)])
  writeFileSync(files.join('wrong.txt'), 'agtx_ik_wrong')
  const refused = ['--to', appliance.url, '--key-file', files.join('wrong.txt')]
  expect(await watchWith('a.log', '--site', 's', ...refused)).toEqual([1, 'sightglass: Unknown API key.\n'])
  const org = await appliance.cli('watch', 'a.log', '--site', 's', '--org', 'nobody')
  expect([org.code, org.stderr]).toEqual([1, expect.stringContaining('No organization "nobody".')])
})
