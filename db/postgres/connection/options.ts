/** Reads a PostgreSQL URL with the parameters of libpq, and adds the settings of a session. */
import { statSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { StoreError } from '../../contract/errors.ts'
import { readTextFile, unreadableReason } from '../../rules/regular-files.ts'

export interface ConnectionOptions {
  url: string
  /** Names the node in `pg_stat_activity`. */
  node: string
  /** The server ends a statement that runs longer. */
  statementTimeoutMs: number
  /** How long a statement waits for a lock that another holds. */
  lockTimeoutMs?: number
  /** The server ends a transaction that waits longer for its next statement. Default: 5 s, because of its locks. */
  idleInTransactionMs?: number
  /** The schema of the tables, unless the URL has `search_path`. */
  schema?: string
  /** Refuses a standby: its answers may be out of date, and it accepts no write. */
  primaryOnly?: boolean
  /** The environment, whose libpq variables apply where the URL says nothing. */
  environment?: { [variable: string]: string | undefined }
}

/** How a server's certificate is checked, and ours for a server that asks for one. */
export interface CertificateOptions {
  rejectUnauthorized: boolean
  /** Whether the certificate must name the host. */
  checksHost: boolean
  ca?: string
  cert?: string
  key?: string
}

/** What the I/O thread needs: plain values, which cross threads. */
export interface ServerOptions {
  /** Tried in this order. */
  servers: Server[]
  database?: string
  username?: string
  password?: string
  ssl: boolean | string | CertificateOptions
  primaryOnly: boolean
  connect_timeout: number
  connection: { [parameter: string]: string | number }
  /** The first of the search path: where the tables are. */
  schema: string
  /** False for a pooler, which gives each transaction another connection. */
  prepare: boolean
  /** What each transaction sets through a pooler, which knows no settings of a session. Empty without one. */
  settings: string
  deadlineMs: number
}

/** A transaction of ours never waits for anything but its own thread. A node that stopped must not hold its locks. */
const idleInTransactionMs = 5_000

/** Longer, so that a transaction that waits for a stalled node gets its lock in the meantime. */
const lockTimeoutMs = 10_000

const connectSeconds = 5

const sslModes = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full']

export function serverOptions(options: ConnectionOptions): ServerOptions {
  const environment = options.environment ?? process.env
  const { url, hosts, parameters } = parsed(options.url)
  const take = (name: string, variable?: string): string | undefined => {
    const value = parameters.get(name) ?? undefined
    parameters.delete(name)
    return value ?? (variable === undefined ? undefined : environment[variable] || undefined)
  }
  const part = (text: string): string | undefined => (text === '' ? undefined : decodeURIComponent(text))
  const servers = serversOf(hosts, take('host') ?? environment['PGHOST'], take('port', 'PGPORT'))
  const prepare = take('prepare') !== 'false'
  const path = searchPath(take('search_path') ?? options.schema ?? 'sightglass')
  const settings = {
    search_path: path,
    statement_timeout: options.statementTimeoutMs,
    lock_timeout: options.lockTimeoutMs ?? lockTimeoutMs,
    idle_in_transaction_session_timeout: options.idleInTransactionMs ?? idleInTransactionMs,
    jit: 'off', // compiling takes longer than any of our statements
  }
  const local = Object.entries(settings).map(([name, value]) => `; SET LOCAL ${name} = ${value}`)
  const result: ServerOptions = {
    ssl: sslOption(take),
    servers,
    ...given('database', take('dbname') ?? part(url.pathname.slice(1)) ?? environment['PGDATABASE']),
    ...given('username', take('user') ?? part(url.username) ?? environment['PGUSER']),
    ...given('password', take('password') ?? part(url.password) ?? (environment['PGPASSWORD'] || undefined)),
    primaryOnly: wantsPrimary(take, options),
    connect_timeout: Number(take('connect_timeout', 'PGCONNECT_TIMEOUT') ?? connectSeconds),
    connection: { application_name: `sightglass/${options.node}`, ...(prepare ? settings : {}) },
    ...{ schema: path.split(',')[0]!, prepare, settings: prepare ? '' : local.join('') },
    deadlineMs: options.statementTimeoutMs,
  }
  if (result.password === undefined)
    Object.assign(result, given('password', storedPassword(result, take, environment)))
  const [unknown] = parameters.keys()
  if (unknown !== undefined) throw refused(`"${unknown}" is not a parameter of a PostgreSQL URL`)
  return result
}

export interface Server {
  host: string // a name, an address, or the folder of a socket
  port: number
}

const defaultPort = 5432

/** The hosts of the URL, or else those of the parameter; a list of ports has one for each, or one for all. */
function serversOf(ofUrl: string[], ofParameter: string | undefined, portList: string | undefined): Server[] {
  const ports = (portList ?? '').split(',').filter(Boolean).map(Number)
  const portOf = (index: number) => ports[index] ?? ports[0] ?? defaultPort
  const names = ofParameter?.split(',').filter(Boolean) ?? []
  if (ofUrl.length === 0)
    return (names.length === 0 ? ['localhost'] : names).map((host, index) => ({ host, port: portOf(index) }))
  return ofUrl.map((text, index) => {
    const [, bracketed, name, port] = /^(?:\[(.+)\]|([^:[\]]+))(?::(\d+))?$/.exec(text) ?? []
    const host = bracketed ?? name
    if (host === undefined) throw refused('it is not a URL')
    return { host: decodeURIComponent(host), port: port === undefined ? portOf(index) : Number(port) }
  })
}

const attributes = ['any', 'read-write', 'primary']

function wantsPrimary(
  take: (name: string, variable?: string) => string | undefined,
  { primaryOnly = false }: ConnectionOptions,
): boolean {
  const wanted = take('target_session_attrs', 'PGTARGETSESSIONATTRS') ?? 'any'
  if (!attributes.includes(wanted))
    throw refused(`target_session_attrs must be one of ${attributes.join(', ')}`)
  return primaryOnly || wanted !== 'any'
}

/** Names that need no quotes: the list is sent as it is. */
function searchPath(names: string): string {
  if (!/^[a-z_][a-z0-9_]*(, ?[a-z_][a-z0-9_]*)*$/.test(names))
    throw refused('search_path must be a list of names in lower case, separated by commas')
  return names
}

function refused(message: string): StoreError {
  return new StoreError('internal', `the database URL cannot be used: ${message}`)
}

/** The URL is not repeated in errors, because it may contain a password. `URL` knows one host only. */
function parsed(text: string): { url: URL; hosts: string[]; parameters: Map<string, string> } {
  const [, start, hosts = '', rest] = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s.exec(text) ?? []
  if (start === undefined) throw refused('it must begin with postgres://')
  const url = URL.parse(`${start}${start.endsWith('@') ? 'host' : ''}${rest}`)
  if (url === null) throw refused('it is not a URL')
  return { url, hosts: hosts.split(',').filter(Boolean), parameters: new Map(url.searchParams) }
}

function given<K extends string, V>(name: K, value: V | undefined): { [key in K]?: V } {
  return value === undefined ? {} : ({ [name]: value } as { [key in K]?: V })
}

function sslOption(take: (name: string, variable?: string) => string | undefined): ServerOptions['ssl'] {
  const mode = take('sslmode', 'PGSSLMODE') ?? 'prefer'
  const root = take('sslrootcert', 'PGSSLROOTCERT')
  const [cert, key] = [take('sslcert', 'PGSSLCERT'), take('sslkey', 'PGSSLKEY')]
  if (!sslModes.includes(mode)) throw refused(`sslmode must be one of ${sslModes.join(', ')}`)
  if (mode === 'disable') return false
  // As in libpq: `require` checks the certificate when it knows an authority, but not the host.
  const isVerified = mode.startsWith('verify') || (mode === 'require' && root !== undefined)
  if (!isVerified && root === undefined && cert === undefined) return mode
  return {
    rejectUnauthorized: isVerified,
    checksHost: mode === 'verify-full',
    ...given('ca', root === undefined || root === 'system' ? undefined : readText('sslrootcert', root)),
    ...given('cert', cert === undefined ? undefined : readText('sslcert', cert)),
    ...given('key', key === undefined ? undefined : readText('sslkey', key)),
  }
}

function readText(parameter: string, path: string): string {
  try {
    return readTextFile(path)
  } catch (error) {
    throw refused(`${parameter} cannot be read (${unreadableReason(error)})`)
  }
}

/** From the password file of libpq, whose lines are host:port:database:user:password. */
function storedPassword(
  { servers, database, username }: Pick<ServerOptions, 'servers' | 'database' | 'username'>,
  take: (name: string, variable?: string) => string | undefined,
  environment: { [variable: string]: string | undefined },
): string | undefined {
  const named = take('passfile', 'PGPASSFILE')
  const path = named ?? join(environment['HOME'] ?? '/', '.pgpass')
  const stat = statSync(path, { throwIfNoEntry: false })
  if (stat === undefined) return undefined
  // As in libpq. Without an error the operator would search for a wrong password.
  if ((stat.mode & 0o077) !== 0)
    throw refused('the password file must not be accessible to others (chmod 600)')
  const user = username ?? userInfo().username
  const isFor = (pattern: string | undefined, value: string) => pattern === '*' || pattern === value
  for (const line of readText('passfile', path).split('\n')) {
    const fields = (line.match(/(?:^|(?<=:))(?:\\.|[^:\\])*/g) ?? []).map((each) =>
      each.replace(/\\(.)/g, '$1'),
    )
    const [host, port, name, account, password] = fields
    const isOurs = servers.some((one) => {
      const isSocket = one.host.startsWith('/') && host === 'localhost'
      return (isFor(host, one.host) || isSocket) && isFor(port, String(one.port))
    })
    if (!line.startsWith('#') && isOurs && isFor(name, database ?? user) && isFor(account, user))
      return password
  }
  return undefined
}
