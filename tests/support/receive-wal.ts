/** The smallest standby: `pg_receivewal` follows a cluster's log, as a synchronous standby when it is named so. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { postgresFolder } from '../../scripts/postgres.ts'
import { run } from './process.ts'
import type { Cluster } from './postgres.ts'

/** `name` is what the cluster calls it. */
export async function startReceiveWal({ url }: Cluster, name: string): Promise<{ stop(): Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), 'sightglass-wal-'))
  const { port } = new URL(url)
  const target = `host=127.0.0.1 port=${port} user=postgres application_name=${name}`
  const program = join(postgresFolder()!, 'pg_receivewal')
  const child = run(
    [program, '-D', folder, '-d', target, '--no-loop', '--synchronous', '--status-interval=1'],
    {
      cwd: '/',
      env: { PATH: '/usr/bin:/bin', LC_ALL: 'C.UTF-8' },
    },
  )
  return {
    async stop() {
      child.signal('SIGTERM')
      await child.exited
      rmSync(folder, { recursive: true })
    },
  }
}
