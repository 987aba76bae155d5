/** Clusters of PostgreSQL for tests: each in a temporary folder on a free port, ended with the process. */
import { chmodSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import postgres from 'postgres'
import { pgbouncerPath, postgresFolder } from '../../scripts/postgres.ts'
import { openConnection } from '../../db/postgres/connection/connection.ts'
import { migrate, migrations } from '../../db/postgres/migrations/migrations.ts'
import { schema } from '../../db/postgres/migrations/migrations.ts'
import { freePort } from './free-port.ts'
import { run, type Running } from './process.ts'
import { tempRoot } from './temp-dir.ts'
import { until } from './until.ts'

export interface Cluster {
  /** Of the database `postgres`, over TCP. */
  url: string
  /** The folder of its Unix socket. */
  socketFolder: string
  pid(): number
  /** Runs SQL and returns the rows of one statement, columns separated by `|`. */
  sql(text: string, database?: string): Promise<string>
  /** Ends it as an operator does. */
  stop(): Promise<void>
  /** Ends it as a power cut does. Connections of a server that was killed alone would answer a little longer. */
  kill(): Promise<void>
  /** Starts it again on the same port and data. */
  restart(): Promise<void>
  /** Stops all of its processes in the middle of what they do, or lets them go on. */
  signal(name: 'SIGSTOP' | 'SIGCONT'): void
  /** Makes a standby the primary. */
  promote(): Promise<void>
}

export interface ClusterOptions {
  /** Off unless asked for: a test that ends the process needs no disk. */
  fsync?: boolean
  /** Of a file of the write-ahead log, in MiB. Default: 1, which is quick to start; a server's own default is 16. */
  walFileMiB?: number
  settings?: { [name: string]: string }
  /** Begins as a copy that follows this server. */
  standbyOf?: { port: number; name: string }
  /** An existing folder that the account of the cluster may write, such as a small file system. */
  folder?: string
  port?: number
}

const startMs = 60_000
/** What a cluster of tests needs: fast to start, small, and quiet. */
const defaults = {
  max_connections: '100',
  shared_buffers: '32MB',
  max_wal_size: '256MB',
  jit: 'off',
  wal_level: 'minimal',
  max_wal_senders: '0',
}

/** PostgreSQL refuses to run as root. Debian's package makes an account of its own. */
const isRoot = process.getuid?.() === 0
const [uid, gid] = ['postgres', 'nobody']
  .flatMap((name) => readFileSync('/etc/passwd', 'utf8').match(new RegExp(`^${name}:.*`, 'm')) ?? [])[0]!
  .split(':')
  .slice(2)

/** The command as the account that may run PostgreSQL. */
export function asAccount(command: string[]): string[] {
  const switched = ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--init-groups']
  return isRoot ? [...switched, ...command] : command
}

export function program(name: string): string {
  const folder = postgresFolder()
  if (folder === null) throw new Error('PostgreSQL is not installed: apt-get install postgresql-15')
  return join(folder, name)
}

export function start(command: string[], folder = '/'): Running {
  return run(command, { cwd: folder, env: { PATH: '/usr/bin:/bin', LC_ALL: 'C.UTF-8' } })
}

async function complete(command: string[]): Promise<string> {
  const child = start(command)
  if ((await child.exited) !== 0) throw new Error(`${command.join(' ')}\n${child.stdout()}${child.stderr()}`)
  return child.stdout()
}

/** Waits for the end of its input, which comes with the end of this process, also by SIGKILL. */
const cleanUp = `cat >/dev/null
[ -f "$0/data/postmaster.pid" ] && kill -s QUIT "$(head -n 1 "$0/data/postmaster.pid")"
[ -f "$0/pgbouncer.pid" ] && kill -s KILL "$(cat "$0/pgbouncer.pid")"
sleep 1
umount -q "$0" 2>/dev/null
rm -rf "$0"`

/** A folder that only the account of the cluster can read. It ends with this process, and what runs in it too. */
export async function clusterFolder(parent = tempRoot()): Promise<string> {
  const folder = mkdtempSync(join(parent, 'sightglass-postgres-'))
  const watch = Bun.spawn(['sh', '-c', cleanUp, folder], {
    cwd: '/',
    stdin: 'pipe',
    stdout: 'ignore',
    stderr: 'ignore',
  })
  watch.unref()
  if (isRoot) await complete(['chown', `${uid}:${gid}`, folder])
  return folder
}

/** A copy takes a tenth of the time of initdb. One template per boot and version, for every test process. */
async function copyTemplate(data: string, walFileMiB: number): Promise<void> {
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').slice(0, 8)
  const version = program('').split('/').at(-3)
  const template = join(
    tempRoot(),
    `sightglass-postgres-template-${version}-${walFileMiB}-${process.getuid?.()}-${boot}`,
  )
  if (!existsSync(template)) {
    const folder = await clusterFolder()
    const options = ['--username=postgres', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync']
    const readyFolder = join(folder, 'made')
    await complete(
      asAccount([program('initdb'), ...options, `--wal-segsize=${walFileMiB}`, '-D', readyFolder]),
    )
    try {
      renameSync(readyFolder, template)
    } catch {
      // Another process was first.
    }
    rmSync(folder, { recursive: true })
  }
  await complete(['cp', '-a', template, data])
}

/** A copy of a running server that follows it, under a name that `synchronous_standby_names` can have. */
async function copyServer(data: string, { port, name }: { port: number; name: string }): Promise<void> {
  const from = `host=127.0.0.1 port=${port} user=postgres application_name=${name}`
  const options = ['--checkpoint=fast', '--write-recovery-conf', '--wal-method=stream', '--no-sync']
  await complete(asAccount([program('pg_basebackup'), ...options, '-d', from, '-D', data]))
}

function clientOf(port: number, database: string): postgres.Sql {
  return postgres({
    host: '127.0.0.1',
    port,
    database,
    username: 'postgres',
    max: 1,
    idle_timeout: 5,
    onnotice: () => {},
    fetch_types: false, // the query of types fails without a handler when the server ends at that moment
  })
}

export function sqlOn(port: number): Cluster['sql'] {
  return async (text, database = 'postgres') => {
    const client = clientOf(port, database)
    try {
      return asLines(await client.unsafe(text).simple())
    } finally {
      await client.end({ timeout: 5 })
    }
  }
}

/**
 * The same for a cluster that outlives the test. Statements on the database `postgres` share a connection, because the
 * server starts a process for each.
 */
function keptSqlOn(port: number): Cluster['sql'] {
  let sharedSql: postgres.Sql | null = null
  return async (text, database = 'postgres') => {
    if (database !== 'postgres') return sqlOn(port)(text, database)
    sharedSql ??= clientOf(port, database)
    return asLines(await sharedSql.unsafe(text).simple())
  }
}

function asLines(rows: Iterable<object>): string {
  return Array.from(rows, (row) => Object.values(row).join('|')).join('\n')
}

export async function startPostgres(options: ClusterOptions = {}): Promise<Cluster> {
  const { fsync = false, settings = {}, walFileMiB = 1, standbyOf, port = freePort() } = options
  const folder = options.folder ?? (await clusterFolder())
  const data = join(folder, 'data')
  await (standbyOf === undefined ? copyTemplate(data, walFileMiB) : copyServer(data, standbyOf))
  const allSettings = {
    ...defaults,
    ...settings,
    ...(fsync ? {} : { fsync: 'off', full_page_writes: 'off' }),
  }
  const set = Object.entries(allSettings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const address = ['-h', '127.0.0.1', '-k', folder, '-p', String(port)]
  const server = [program('postgres'), '-D', data, ...address, ...set].map((word) => `'${word}'`)
  // Not a pipe: while a test blocks its thread nobody reads it, and the server would wait to write its log.
  const log = join(folder, 'log')
  const command = asAccount(['sh', '-c', `exec ${server.join(' ')} >'${log}' 2>&1`])
  let running = await serve()

  async function serve(): Promise<Running> {
    rmSync(log, { force: true })
    const child = start(command, folder)
    let ended = false
    void child.exited.then(() => (ended = true))
    const written = () => (existsSync(log) ? readFileSync(log, 'utf8') : '')
    const isReady = () => ended || /ready to accept (read-only )?connections/.test(written())
    await until(isReady, startMs)
    if (ended) throw new Error(`PostgreSQL did not start\n${written()}`)
    return child
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    running.signal(signal)
    await running.exited
  }

  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    socketFolder: folder,
    pid: () => running.pid,
    sql: sqlOn(port),
    async stop() {
      await end('SIGINT')
      rmSync(folder, { recursive: true })
    },
    async kill() {
      running.signal('SIGSTOP') // starts no further process
      const children = childrenOf(running.pid)
      for (const pid of children) signalTo(pid, 'SIGKILL')
      await end('SIGKILL')
      // Until then they hold the memory that the next start wants.
      await until(() => children.every((pid) => !existsSync(`/proc/${pid}`)))
    },
    signal(name) {
      if (name === 'SIGSTOP') running.signal(name)
      for (const pid of childrenOf(running.pid)) signalTo(pid, name)
      if (name === 'SIGCONT') running.signal(name)
    },
    async promote() {
      await complete(asAccount([program('pg_ctl'), 'promote', '--wait', '-D', data]))
    },
    async restart() {
      await end('SIGINT')
      running = await serve()
    },
  }
}

export function childrenOf(pid: number): number[] {
  const listed = `/proc/${pid}/task/${pid}/children`
  return existsSync(listed) ? readFileSync(listed, 'utf8').split(' ').filter(Boolean).map(Number) : []
}

export function signalTo(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // It ended meanwhile.
  }
}

/** A cluster that others use too, so nobody ends it. */
export type SharedCluster = Pick<Cluster, 'url' | 'socketFolder' | 'sql'>

/** The cluster of a whole `npm test`, which sets this variable; otherwise each process starts one. */
const ofRun = process.env['SIGHTGLASS_TEST_CLUSTER']

/** For every process of a run. Returns the value of the variable. */
export async function startRunCluster(parent?: string): Promise<{ address: string; stop(): Promise<void> }> {
  const folder = await clusterFolder(parent)
  const settings = { max_connections: '600', shared_buffers: '128MB' }
  const cluster = await startPostgres({ settings, folder })
  await makeTemplate(cluster)
  return { address: JSON.stringify([cluster.url, cluster.socketFolder]), stop: cluster.stop }
}

function joinRunCluster(address: string): SharedCluster {
  const [url, socketFolder] = JSON.parse(address) as [string, string]
  return { url, socketFolder, sql: keptSqlOn(Number(new URL(url).port)) }
}

const template = 'migrated'

async function makeTemplate(cluster: SharedCluster): Promise<void> {
  await cluster.sql(`CREATE DATABASE ${template} TEMPLATE template0`)
  const url = cluster.url.replace(/postgres$/, template)
  const db = openConnection({ url, node: 'test', statementTimeoutMs: 60_000 })
  migrate(db, schema, migrations, 0)
  db.close()
}

export interface TestDatabase {
  url: string
  cluster: SharedCluster
  name: string
  drop(): Promise<void>
}

let shared: Promise<SharedCluster> | null = null
let versionOfShared: Promise<string> | null = null
let madeTemplate: Promise<void> | null = null
let databases = 0

/** From version 15 the default copies through the log, which takes twice the processor time of copying files. */
async function strategy(cluster: SharedCluster): Promise<string> {
  const version = Number(await (versionOfShared ??= cluster.sql('SHOW server_version_num')))
  return version >= 150_000 ? ' STRATEGY FILE_COPY' : ''
}

/**
 * A database on a cluster that the whole test process, or the whole run, shares: empty, or with the newest schema,
 * which opens sooner.
 */
export async function database(contents: 'empty' | 'migrated' = 'empty'): Promise<TestDatabase> {
  shared ??= ofRun === undefined ? startPostgres() : Promise.resolve(joinRunCluster(ofRun))
  const cluster = await shared
  if (contents === 'migrated' && ofRun === undefined) await (madeTemplate ??= makeTemplate(cluster))
  const name = `test_${process.pid}_${++databases}`
  const from = contents === 'empty' ? 'template0' : template
  await cluster.sql(`CREATE DATABASE ${name} TEMPLATE ${from}${await strategy(cluster)}`)
  const drop = async () => void (await cluster.sql(`DROP DATABASE ${name} WITH (FORCE)`))
  return { url: cluster.url.replace(/postgres$/, name), cluster, name, drop }
}

/** Without pgbouncer the tests through a pooler are skipped; `npm test` says what to install. */
export const hasPooler = pgbouncerPath() !== null

export interface Pooler {
  url(database: string): string
  /** Ends it at once, with its connections, and starts it again. */
  restart(): Promise<void>
  stop(): Promise<void>
}

/** A pooler in transaction mode before the cluster: `connections` of the server for any number of clients. */
export async function startPooler(
  cluster: Pick<SharedCluster, 'url' | 'socketFolder'>,
  connections: number,
): Promise<Pooler> {
  const path = pgbouncerPath()
  if (path === null) throw new Error('pgbouncer is not installed: apt-get install pgbouncer')
  const folder = await clusterFolder()
  const port = freePort()
  const settings = {
    listen_addr: '127.0.0.1',
    listen_port: port,
    unix_socket_dir: '',
    auth_type: 'any',
    pidfile: join(folder, 'pgbouncer.pid'),
    pool_mode: 'transaction',
    default_pool_size: connections,
    max_client_conn: 100,
    server_login_retry: 1, // after a failed connection; its default keeps clients waiting for 15 s
  }
  const server = `host=${cluster.socketFolder} port=${new URL(cluster.url).port} user=postgres`
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`)
  const file = join(folder, 'pgbouncer.ini')
  writeFileSync(file, ['[databases]', `* = ${server}`, '[pgbouncer]', ...lines, ''].join('\n'))
  chmodSync(file, 0o644) // an open store sets a umask
  const log = join(folder, 'log')

  async function serve(): Promise<Running> {
    rmSync(log, { force: true })
    rmSync(settings.pidfile, { force: true })
    const child = start(asAccount(['sh', '-c', `exec '${path}' '${file}' >'${log}' 2>&1`]), folder)
    const written = () => (existsSync(log) ? readFileSync(log, 'utf8') : '')
    await until(() => written().includes('process up'), startMs)
    return child
  }

  let child = await serve()
  return {
    url: (database) => `postgres://postgres@127.0.0.1:${port}/${database}?prepare=false`,
    async restart() {
      child.signal('SIGKILL')
      await child.exited
      child = await serve()
    },
    async stop() {
      child.signal('SIGTERM')
      await child.exited
      rmSync(folder, { recursive: true })
    },
  }
}
