/** Finds and installs the PostgreSQL and pgbouncer of tests: Debian's packages, with apt-get. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { command } from './command.ts'

/** Debian's versions, newest first. The oldest is what the product promises to run on. */
const folders = ['18', '17', '16', '15'].map((version) => `/usr/lib/postgresql/${version}/bin`)

/** The folder of `initdb` and `postgres`, null without one. `POSTGRES_BIN` names another one. */
export function postgresFolder(): string | null {
  const found = process.env['POSTGRES_BIN'] || folders.find((folder) => existsSync(join(folder, 'postgres')))
  return found ?? null
}

/** The pooler that tests connect through, null without one. */
export function pgbouncerPath(): string | null {
  return Bun.which('pgbouncer', { PATH: `${process.env['PATH']}:/usr/sbin` })
}

const isInstalled = (): boolean => postgresFolder() !== null && pgbouncerPath() !== null

/** Null if PostgreSQL and pgbouncer are installed, else an error with advice. */
export async function ensurePostgres(): Promise<string | null> {
  if (isInstalled()) return null
  const mayInstall = process.getuid?.() === 0 && Bun.which('apt-get') !== null
  const failure = mayInstall ? await install() : null
  if (isInstalled()) return null
  const advice = 'Install them (Debian: apt-get install postgresql-15 pgbouncer).'
  return `${failure ?? 'Tests of the second engine need PostgreSQL 15 or newer and pgbouncer.'} ${advice}`
}

/** Null, or what failed. Installs the program without a cluster: tests start their own. */
async function install(): Promise<string | null> {
  process.stdout.write('installing postgresql-15 and pgbouncer with apt-get …\n')
  // The package of every version creates a cluster and starts it, unless this file says otherwise.
  const noCluster =
    'mkdir -p /etc/postgresql-common && ' +
    'echo "create_main_cluster = false" >> /etc/postgresql-common/createcluster.conf'
  const options = '-o Acquire::Retries=0 -o Acquire::http::Timeout=20'
  const packages = '--yes --no-install-recommends postgresql-15 pgbouncer'
  const steps = [`apt-get ${options} update`, noCluster, `apt-get ${options} install ${packages}`]
  for (const step of steps) {
    const env = { DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
    const result = await command(['sh', '-c', step], { timeoutMs: 5 * 60_000, env })
    if (result.code !== 0) return `${step} failed:\n${result.output.trimEnd()}\n`
  }
  return null
}
