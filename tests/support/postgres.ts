/** Clusters of PostgreSQL for tests: each in a temporary folder on a free port, ended with the process. */
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import postgres from 'postgres'
import { pgbouncerPath, postgresFolder } from '../../scripts/postgres.ts'
import { run, type Running } from './process.ts'
import { until } from './until.ts'

export interface Cluster {
  /** Of the database `postgres`, over TCP. */
  url: string
  /** The folder of its Unix socket. */
  socketFolder: string
  /** Runs SQL and returns the rows of one statement, columns separated by `|`. */
  sql(text: string, database?: string): Promise<string>
  /** Ends it as an operator does. */
  stop(): Promise<void>
  /** Ends it as a power cut does. Connections of a server that was killed alone would answer a little longer. */
  kill(): Promise<void>
  /** Starts it again on the same port and data. */
  restart(): Promise<void>
}

export interface ClusterOptions {
  /** Off unless asked for: a test that ends the process needs no disk. */
  fsync?: boolean
  settings?: { [name: string]: string }
}

const startMs = 60_000
/** What a cluster of tests needs: fast to start, small, and quiet. */
const defaults = {
  ...{ max_connections: '100', shared_buffers: '32MB', max_wal_size: '256MB', jit: 'off' },
  ...{ wal_level: 'minimal', max_wal_senders: '0', autovacuum_naptime: '10s' },
}

/** PostgreSQL refuses to run as root. Debian's package makes an account of its own. */
const isRoot = process.getuid?.() === 0
const [uid, gid] = ['postgres', 'nobody']
  .flatMap((name) => readFileSync('/etc/passwd', 'utf8').match(new RegExp(`^${name}:.*`, 'm')) ?? [])[0]!
  .split(':')
  .slice(2)

function asAccount(command: string[]): string[] {
  const switched = ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--init-groups']
  return isRoot ? [...switched, ...command] : command
}

function program(name: string): string {
  const folder = postgresFolder()
  if (folder === null) throw new Error('PostgreSQL is not installed: apt-get install postgresql-15')
  return join(folder, name)
}

function start(command: string[], folder = '/'): Running {
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
rm -rf "$0"`

/** A folder that only the account of the cluster can read. It ends with this process, and what runs in it too. */
async function clusterFolder(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'sightglass-postgres-'))
  const watch = Bun.spawn(['sh', '-c', cleanUp, folder], {
    ...{ cwd: '/', stdin: 'pipe', stdout: 'ignore', stderr: 'ignore' },
  })
  watch.unref()
  if (isRoot) await complete(['chown', `${uid}:${gid}`, folder])
  return folder
}

/** A copy takes a tenth of the time of initdb. One template per boot and version, for every test process. */
async function copyTemplate(data: string): Promise<void> {
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').slice(0, 8)
  const version = program('').split('/').at(-3)
  const template = join(tmpdir(), `sightglass-postgres-template-${version}-${process.getuid?.()}-${boot}`)
  if (!existsSync(template)) {
    const folder = await clusterFolder()
    const options = ['--username=postgres', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync']
    const made = join(folder, 'made')
    await complete(asAccount([program('initdb'), ...options, '--wal-segsize=1', '-D', made]))
    try {
      renameSync(made, template)
    } catch {
      // Another process was first.
    }
    rmSync(folder, { recursive: true })
  }
  await complete(['cp', '-a', template, data])
}

function freePort(): number {
  const server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  const { port } = server
  server.stop(true)
  return port
}

export async function startPostgres({ fsync = false, settings = {} }: ClusterOptions = {}): Promise<Cluster> {
  const folder = await clusterFolder()
  const data = join(folder, 'data')
  await copyTemplate(data)
  const port = freePort()
  const all = { ...defaults, ...settings, ...(fsync ? {} : { fsync: 'off', full_page_writes: 'off' }) }
  const options = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const address = ['-h', '127.0.0.1', '-k', folder, '-p', String(port)]
  const server = [program('postgres'), '-D', data, ...address, ...options].map((word) => `'${word}'`)
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
    const isReady = () => ended || written().includes('ready to accept connections')
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
    async sql(text, database = 'postgres') {
      const options = { host: '127.0.0.1', port, database, username: 'postgres', max: 1, onnotice: () => {} }
      const client = postgres(options)
      try {
        const rows = await client.unsafe(text).simple()
        return rows.map((row) => Object.values(row).join('|')).join('\n')
      } finally {
        await client.end()
      }
    },
    async stop() {
      await end('SIGINT')
      rmSync(folder, { recursive: true })
    },
    async kill() {
      running.signal('SIGSTOP') // starts no further process
      const task = `/proc/${running.pid}/task/${running.pid}/children`
      const children = readFileSync(task, 'utf8').trim().split(' ')
      for (const pid of children) process.kill(Number(pid), 'SIGKILL')
      await end('SIGKILL')
      // Until then they hold the memory that the next start wants.
      await until(() => children.every((pid) => !existsSync(`/proc/${pid}`)))
    },
    async restart() {
      await end('SIGINT')
      running = await serve()
    },
  }
}

let shared: Promise<Cluster> | null = null
let databases = 0

/** An empty database on a cluster that the whole test process shares. */
export async function database(): Promise<{ url: string; cluster: Cluster; name: string }> {
  shared ??= startPostgres()
  const cluster = await shared
  const name = `test_${++databases}`
  await cluster.sql(`CREATE DATABASE ${name} TEMPLATE template0`)
  return { url: cluster.url.replace(/postgres$/, name), cluster, name }
}

/** Without pgbouncer the tests through a pooler are skipped; `npm test` says what to install. */
export const hasPooler = pgbouncerPath() !== null

/** A pooler in transaction mode before the cluster: `connections` of the server for any number of clients. */
export async function startPooler(
  cluster: Cluster,
  connections: number,
): Promise<{ url(database: string): string; stop(): Promise<void> }> {
  const path = pgbouncerPath()
  if (path === null) throw new Error('pgbouncer is not installed: apt-get install pgbouncer')
  const folder = await clusterFolder()
  const port = freePort()
  const settings = {
    ...{ listen_addr: '127.0.0.1', listen_port: port, unix_socket_dir: '', auth_type: 'any' },
    pidfile: join(folder, 'pgbouncer.pid'),
    ...{ pool_mode: 'transaction', default_pool_size: connections, max_client_conn: 100 },
  }
  const server = `host=${cluster.socketFolder} port=${new URL(cluster.url).port} user=postgres`
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`)
  const file = join(folder, 'pgbouncer.ini')
  writeFileSync(file, ['[databases]', `* = ${server}`, '[pgbouncer]', ...lines, ''].join('\n'))
  const log = join(folder, 'log')
  const child = start(asAccount(['sh', '-c', `exec '${path}' '${file}' >'${log}' 2>&1`]), folder)
  const written = () => (existsSync(log) ? readFileSync(log, 'utf8') : '')
  await until(() => written().includes('process up'), startMs)
  return {
    url: (database) => `postgres://postgres@127.0.0.1:${port}/${database}?prepare=false`,
    async stop() {
      child.signal('SIGTERM')
      await child.exited
      rmSync(folder, { recursive: true })
    },
  }
}
