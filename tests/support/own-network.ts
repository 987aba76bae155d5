/** Runs a program in a network of its own, as root of a user namespace. */
import { cli } from './binary.ts'

export interface OwnNetworkExit {
  code: number
  stderr: string
  /** The last line of its output, as JSON; null without output. */
  answer: unknown
}

/** `setUp`: shell commands that prepare the network and its mounts. `program`: a file that Bun runs. */
export async function runInOwnNetwork(setUp: string[], program: string): Promise<OwnNetworkExit> {
  const built = await cli(['version']) // builds the executable while there is a network
  if (built.code !== 0) throw new Error(built.stderr)
  const script = `${setUp.join(' && ')} && exec "$@"`
  const inside = ['sh', '-c', script, 'sh', process.execPath, program]
  const child = Bun.spawn(['unshare', '--map-root-user', '--net', '--mount', ...inside], {
    // One file: it closes its browser itself.
    env: { ...process.env, SIGHTGLASS_TEST_BINARY: 'built', SIGHTGLASS_TEST_FILES: '1' },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [code, stdout, stderr] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ])
  const last = stdout.trim().split('\n').at(-1) ?? ''
  return { code, stderr, answer: last === '' ? null : (JSON.parse(last) as unknown) }
}
