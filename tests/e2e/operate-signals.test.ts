/** SIGHUP reloads and never ends the server; its log on a full disk continues when there is room again. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { mkdirSync, openSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { binaryPath, startAppliance } from '../support/binary.ts'
import { tempDir } from '../support/temp-dir.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(60_000)

test('SIGHUP without TLS is harmless, during requests too', async () => {
  await using appliance = await startAppliance()
  for (let n = 0; n < 20; n++) {
    process.kill(appliance.pid, 'SIGHUP')
    expect((await fetch(`${appliance.url}/healthz`)).status).toBe(200)
  }
  await until(() => appliance.stderr().includes('"event":"reloaded"'))
  expect((await appliance.stop()).code).toBe(0)
})

/** A server whose standard error is a file, as under `2>>sightglass.log`. */
async function startWithLogFile(dataDir: string, logPath: string) {
  await (await startAppliance({ dataDir })).stop() // builds the executable and makes the folder
  const command = [binaryPath, 'serve', '--listen', '127.0.0.1:0', '--data-dir', dataDir]
  const child = Bun.spawn([...command, '--log-level', 'info'], {
    env: { PATH: process.env.PATH ?? '', TZ: 'UTC' },
    stdout: 'pipe',
    stderr: openSync(logPath, 'a'),
  })
  const reader = child.stdout.getReader()
  await reader.read()
  return {
    hangUp: () => child.kill('SIGHUP'),
    async stop() {
      child.kill('SIGTERM')
      return child.exited
    },
  }
}

test('SIGHUP opens a rotated log file again', async () => {
  using dir = tempDir('rotate')
  const path = dir.join('sightglass.log')
  const server = await startWithLogFile(dir.join('data'), path)
  renameSync(path, `${path}.1`)
  server.hangUp()
  await until(() => readFileSync(path, { encoding: 'utf8', flag: 'a+' }).includes('"event":"reloaded"'))
  expect(await server.stop()).toBe(0)
  expect(readFileSync(path, 'utf8')).toContain('"event":"stopped"')
})

test('the log continues after its disk was full, with the lines written meanwhile', async () => {
  using dir = tempDir('log-disk')
  const disk = dir.join('disk')
  mkdirSync(disk)
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', disk]).status !== 0) {
    console.log('skipped: this user may not mount a small disk')
    return
  }
  try {
    const path = `${disk}/sightglass.log`
    const server = await startWithLogFile(dir.join('data'), path)
    spawnSync('dd', ['if=/dev/zero', `of=${disk}/filler`, 'bs=4k'])
    const sizeBefore = readFileSync(path, 'utf8').length
    for (let n = 0; n < 400; n++) {
      server.hangUp()
      await Bun.sleep(2)
    }
    rmSync(`${disk}/filler`)
    await until(() => readFileSync(path, 'utf8').length > sizeBefore + 4_096)
    expect(await server.stop()).toBe(0)
    const lines = readFileSync(path, 'utf8').trim().split('\n')
    expect(lines.map((line) => JSON.parse(line).event as string).at(-1)).toBe('stopped')
  } finally {
    spawnSync('umount', ['-l', disk])
  }
})
