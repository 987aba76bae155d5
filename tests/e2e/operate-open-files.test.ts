/** The executable at its limit of open files: it refuses connections instead of spinning, and comes back by itself. */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { binaryPath, parseListening } from '../support/binary.ts'
import { run } from '../support/process.ts'
import { tempDir } from '../support/temp-dir.ts'
import { buildIfStale } from '../../scripts/build.ts'

/** Milliseconds of a processor, of all threads. */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10 // user and system, in hundredths of a second
}

const isUp = (url: string) =>
  fetch(`${url}/healthz`, { headers: { connection: 'close' } }).then(
    ({ status }) => status === 200,
    () => false,
  )

test('400 idle connections under a limit of 256 files use no processor time, and the server recovers', async () => {
  await buildIfStale()
  using dir = tempDir('files')
  const serve = [binaryPath, 'serve', '--listen', '127.0.0.1:0', '--data-dir', dir.join('data')]
  const child = run(['bash', '-c', 'ulimit -n 256; exec "$@"', 'bash', ...serve], {
    cwd: dir.path,
    env: { PATH: process.env.PATH ?? '', HOME: dir.path },
  })
  try {
    const { url } = await child.line(parseListening, 30_000)
    const port = Number(new URL(url).port)
    const connect = () =>
      Bun.connect({ hostname: '127.0.0.1', port, socket: { data() {}, error() {} } }).catch(() => null)
    const open = []
    for (let n = 0; n < 400; n++) open.push(await connect())
    await Bun.sleep(1_000) // it has noticed
    const beforeMs = cpuMs(child.pid)
    const startMs = performance.now()
    await Bun.sleep(3_000)
    const share = (cpuMs(child.pid) - beforeMs) / (performance.now() - startMs)
    expect(share).toBeLessThan(0.3)
    expect(child.stderr()).toContain('connections_paused')
    expect(await isUp(url)).toBe(false)
    for (const socket of open) socket?.terminate()
    const endMs = performance.now() + 10_000
    while (!(await isUp(url)) && performance.now() < endMs) await Bun.sleep(100)
    expect(await isUp(url)).toBe(true)
    expect(child.stderr()).toContain('connections_resumed')
  } finally {
    child.signal('SIGTERM')
    expect(await child.exited).toBe(0)
  }
}, 60_000)
