/** `sightglass copy` as an operator runs it: beside a server, over the switch, and back into a folder. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { binaryPath, cli, startAppliance } from '../support/binary.ts'
import { database } from '../support/postgres.ts'
import { run } from '../support/process.ts'
import { tempDir } from '../support/temp-dir.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(90_000)

const env = { PATH: process.env['PATH'] ?? '' }

/** As the help says: the key files one after the other. */
function writeRing(ring: string, folder: string): void {
  const keys = ['secret.key', 'audit-signing.key'].map((name) => readFileSync(`${folder}/${name}`, 'utf8'))
  writeFileSync(ring, keys.join(''), { mode: 0o600 })
}

/** Before that, a signal ends the process without a word. The mask of `/proc` counts signals from its lowest bit. */
function catchesSigint(pid: number): boolean {
  const mask = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '0'
  return (BigInt(`0x${mask}`) & 2n) !== 0n
}

test('a team moves to a shared database beside its server, and comes back', async () => {
  using temp = tempDir('copy-e2e')
  const folder = temp.join('data')
  const ring = temp.join('ring')
  const node = temp.join('node')
  const back = temp.join('back')
  const { url } = await database()
  const server = await startAppliance({ dataDir: folder })
  await server.cli('demo', '--events', '400')
  const secret = (await server.cli('webhook', 'secret', '--json')).stdout
  expect(secret).toContain('whsec_')
  const ends = ['copy', '--from', folder, '--to', url]

  const withoutRing = await cli(ends)
  expect([withoutRing.code, withoutRing.stderr]).toEqual([
    1,
    expect.stringContaining('name it with --key-file'),
  ])
  writeFileSync(ring, `${'0'.repeat(64)}\n`, { mode: 0o600 })
  const wrongRing = await cli([...ends, '--key-file', ring])
  expect(wrongRing.stderr).toMatch(/key ring lacks the key/)
  writeRing(ring, folder)

  const shared = ['--database', url, '--key-file', ring]
  const beside = await cli([...ends, '--key-file', ring])
  expect([beside.code, beside.stdout]).toEqual([
    0,
    expect.stringContaining('run the same command with --finish'),
  ])
  const early = await cli(['serve', ...shared, '--listen', '127.0.0.1:0'], { dataDir: node })
  expect([early.code, early.stderr]).toEqual([1, expect.stringContaining('unfinished copy')])

  const stopped = run([binaryPath, ...ends, '--key-file', ring, '--finish'], { cwd: temp.path, env })
  await until(() => catchesSigint(stopped.pid))
  stopped.signal('SIGINT')
  expect([await stopped.exited, stopped.stderr()]).toEqual([1, expect.stringContaining('again to continue')])

  const finishing = run([binaryPath, ...ends, '--key-file', ring, '--finish'], { cwd: temp.path, env })
  await Bun.sleep(500)
  await server.stop()
  expect([await finishing.exited, finishing.stderr()]).toEqual([0, ''])
  expect(finishing.stdout()).toMatch(/events +\d+ +\d+ +equal/)
  expect(finishing.stdout()).toContain('The switch is safe')
  const former = await cli(['serve', '--listen', '127.0.0.1:0'], { dataDir: folder })
  expect([former.code, former.stderr]).toEqual([1, expect.stringContaining('sightglass copy reopen')])

  const moved = await startAppliance({ dataDir: node, args: shared })
  expect((await moved.cli('webhook', 'secret', '--json', ...shared)).stdout).toBe(secret)
  const verified = await cli(['verify', ...shared], { dataDir: node })
  expect([verified.code, verified.stdout]).toEqual([0, expect.stringContaining('Everything is intact')])
  await moved.stop()

  const home = await cli(['copy', '--from', url, '--to', back, '--key-file', ring, '--json'])
  expect([home.code, (JSON.parse(home.stdout) as { equal: boolean }).equal]).toEqual([0, true])
  const again = await startAppliance({ dataDir: back })
  expect((await again.cli('webhook', 'secret', '--json')).stdout).toBe(secret)
  await again.stop()
  expect((await cli(['verify'], { dataDir: back })).code).toBe(0)
  for (const name of ['secret.key', 'audit-signing.key'])
    expect(readFileSync(`${back}/${name}`, 'utf8')).toBe(readFileSync(`${folder}/${name}`, 'utf8'))

  const refused = await cli(['copy', 'reopen'], { dataDir: folder })
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('reopen --yes')])
  expect((await cli(['copy', 'reopen', '--yes'], { dataDir: folder })).code).toBe(0)
  expect((await cli(['verify'], { dataDir: folder })).code).toBe(0)
})
