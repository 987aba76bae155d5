/** Reads a PostgreSQL URL with the parameters of libpq, and adds the settings of a session. */
import { existsSync, statSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { readTextFile, unreadableReason } from '../../rules/regular-files.ts'
import { requireSupported } from './parameters.ts'
import { fixedSettings, localSettings } from './settings.ts'
import { decodePercent, parseDatabaseUrl, refused, saslPrepared } from './url.ts'

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
interface CertificateOptions {
  rejectUnauthorized: boolean
  /** Whether the certificate must name the host. */
  checksHost: boolean
  ca?: string
  crl?: string
  passphrase?: string // of the key
  minVersion?: string
  maxVersion?: string
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
  connect_timeout: number // in seconds; 0 for no limit
  keep_alive: number | null // idle seconds before the first probe; null for none
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
  const url = parseDatabaseUrl(options.url)
  const { parameters } = url
  const take: Take = (name, variable) => {
    const value = parameters.get(name) || undefined
    parameters.delete(name)
    return value ?? (variable === undefined ? undefined : environment[variable] || undefined)
  }
  requireTls(take('ssl'), parameters)
  const servers = serversOf(url.hosts, take, environment)
  const startOptions = take('options', 'PGOPTIONS')
  const prepare = take('prepare') !== 'false'
  const path = searchPath(take('search_path') ?? searchPathIn(startOptions) ?? options.schema ?? 'sightglass')
  const settings = {
    search_path: path,
    statement_timeout: options.statementTimeoutMs,
    lock_timeout: options.lockTimeoutMs ?? lockTimeoutMs,
    idle_in_transaction_session_timeout: options.idleInTransactionMs ?? idleInTransactionMs,
    ...fixedSettings,
  }
  const givenName = take('application_name', 'PGAPPNAME') ?? take('fallback_application_name')
  parameters.delete('fallback_application_name')
  const name = `sightglass/${options.node}` // counts as one of ours in `pg_stat_activity`
  const result: ServerOptions = {
    ssl: sslOption(take),
    servers,
    ...pickDefined('database', take('dbname') ?? url.database ?? environment['PGDATABASE']),
    ...pickDefined('username', take('user') ?? url.user ?? environment['PGUSER']),
    ...pickDefined('password', take('password') ?? url.password ?? (environment['PGPASSWORD'] || undefined)),
    primaryOnly: wantsPrimary(take, options),
    connect_timeout: Math.max(
      0,
      wholeNumber('connect_timeout', take('connect_timeout', 'PGCONNECT_TIMEOUT'), connectSeconds),
    ),
    keep_alive: keepAlive(take),
    connection: {
      application_name: givenName === undefined ? name : `${name} ${givenName}`,
      ...pickDefined('options', startOptions),
      ...(prepare ? settings : {}),
    },
    schema: path.split(',')[0]!,
    prepare,
    settings: prepare ? '' : localSettings(settings),
    deadlineMs: options.statementTimeoutMs,
  }
  if (result.password === undefined)
    Object.assign(result, pickDefined('password', storedPassword(result, take, environment)))
  if (result.password !== undefined) result.password = saslPrepared(result.password)
  requireSupported(parameters, environment)
  return result
}

type Take = (name: string, variable?: string) => string | undefined

/** JDBC writes `ssl=true`, which libpq takes too. Other drivers have values that mean less than they seem to. */
function requireTls(ssl: string | undefined, parameters: Map<string, string>): void {
  if (ssl === undefined) return
  if (ssl !== 'true') throw refused(`ssl=${ssl} is not supported: write sslmode=require or sslmode=disable`)
  if (!parameters.has('sslmode')) parameters.set('sslmode', 'require')
}

function wholeNumber(name: string, text: string | undefined, byDefault: number): number {
  if (text === undefined) return byDefault
  if (!/^\s*-?\d{1,9}\s*$/.test(text)) throw refused(`${name} must be a whole number`)
  return Number(text)
}

const keepAliveSeconds = 60

function keepAlive(take: Take): number | null {
  const isOn = wholeNumber('keepalives', take('keepalives'), 1) !== 0
  const seconds = wholeNumber('keepalives_idle', take('keepalives_idle'), 0)
  return isOn ? seconds || keepAliveSeconds : null
}

/** `-c search_path=logs`, as `psql` takes it: the session's own would override it. */
function searchPathIn(startOptions: string | undefined): string | undefined {
  return /(?:-c\s*|--)search_path=(\S+)/.exec(startOptions ?? '')?.[1]
}

export interface Server {
  host: string // a name, an address, or the folder of a socket
  port: number
  address?: string // where to connect, when the host is only the name in its certificate
}

const defaultPort = 5432

/** As in libpq, parameters override what is before them. A list of ports has one for each host, or one for all. */
function serversOf(
  urlHosts: string[],
  take: Take,
  environment: { [variable: string]: string | undefined },
): Server[] {
  const written = urlHosts.map(hostAndPort)
  const names = listOf(take('host')) ?? (written.length > 0 ? written.map(({ host }) => host) : null)
  const addresses = listOf(take('hostaddr', 'PGHOSTADDR'))
  const hosts = names ?? listOf(environment['PGHOST']) ?? addresses ?? ['']
  const givenPorts = listOf(take('port'))
  const writtenPorts = written.some(({ port }) => port !== '') ? written.map(({ port }) => port) : null
  const ports =
    givenPorts ?? (writtenPorts?.length === hosts.length ? writtenPorts : listOf(environment['PGPORT'])) ?? []
  requireSameCount('ports', ports, hosts)
  requireSameCount('addresses in hostaddr', addresses ?? [], hosts)
  const servers = hosts.map((host, index) => {
    const port = portOf((ports.length === 1 ? ports[0] : ports[index]) || environmentPort(environment))
    return { host: host || localHost(port), port, ...pickDefined('address', addresses?.[index]) }
  })
  return take('load_balance_hosts', 'PGLOADBALANCEHOSTS') === 'random' ? shuffled(servers) : servers
}

/** Where packages of Linux distributions put the socket, and PostgreSQL itself. */
const socketFolders = ['/var/run/postgresql', '/tmp']

/** Without a host, this machine's server is meant. libpq knows one folder, that of its build. */
function localHost(port: number): string {
  return socketFolders.find((folder) => existsSync(join(folder, `.s.PGSQL.${port}`))) ?? 'localhost'
}

function listOf(text: string | undefined): string[] | null {
  const parts = (text ?? '').split(',').filter(Boolean)
  return parts.length === 0 ? null : parts
}

function hostAndPort(text: string): { host: string; port: string } {
  const [, bracketed, name, port = ''] = /^(?:\[(.+)\]|([^:[\]]*))(?::(\d*))?$/.exec(text) ?? []
  const host = bracketed ?? name
  if (host === undefined) throw refused('a host is NAME, NAME:PORT or [IPV6]:PORT')
  return { host: decodePercent('a host', host), port }
}

function requireSameCount(label: string, values: string[], hosts: string[]): void {
  if (values.length > 1 && values.length !== hosts.length)
    throw refused(`it has ${values.length} ${label} and ${hosts.length} hosts`)
}

function environmentPort({ PGPORT: port = '' }: { [variable: string]: string | undefined }): string {
  return /^\d+$/.test(port) ? port : String(defaultPort)
}

function portOf(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (port < 1 || port > 65_535) throw refused('a port is a number from 1 to 65535')
  return port
}

function shuffled(servers: Server[]): Server[] {
  return servers
    .map((server) => ({ server, order: Math.random() }))
    .toSorted((left, right) => left.order - right.order)
    .map(({ server }) => server)
}

const attributes = ['any', 'read-write', 'primary'] // a node writes, so no standby serves it

function wantsPrimary(take: Take, { primaryOnly = false }: ConnectionOptions): boolean {
  const targetAttribute = take('target_session_attrs', 'PGTARGETSESSIONATTRS') ?? 'any'
  if (!attributes.includes(targetAttribute))
    throw refused(`target_session_attrs must be one of ${attributes.join(', ')}`)
  return primaryOnly || targetAttribute !== 'any'
}

/** Names that need no quotes: the list is sent as it is. */
function searchPath(names: string): string {
  if (!/^[a-z_][a-z0-9_]*(, ?[a-z_][a-z0-9_]*)*$/.test(names))
    throw refused('search_path must be a list of names in lower case, separated by commas')
  return names
}

function pickDefined<K extends string, V>(name: K, value: V | undefined): { [key in K]?: V } {
  return value === undefined ? {} : ({ [name]: value } as { [key in K]?: V })
}

function sslOption(take: Take): ServerOptions['ssl'] {
  const mode = take('sslmode', 'PGSSLMODE') ?? 'prefer'
  const root = take('sslrootcert', 'PGSSLROOTCERT')
  const cert = take('sslcert', 'PGSSLCERT')
  const key = take('sslkey', 'PGSSLKEY')
  const crl = take('sslcrl', 'PGSSLCRL')
  const passphrase = take('sslpassword')
  const minVersion = tlsVersion(take('ssl_min_protocol_version', 'PGSSLMINPROTOCOLVERSION'))
  const maxVersion = tlsVersion(take('ssl_max_protocol_version', 'PGSSLMAXPROTOCOLVERSION'))
  if (!sslModes.includes(mode)) throw refused(`sslmode must be one of ${sslModes.join(', ')}`)
  if (mode === 'disable') return false
  // As in libpq: `require` checks the certificate when it knows an authority, but not the host.
  const isVerified = mode.startsWith('verify') || (mode === 'require' && root !== undefined)
  const isPlain = [root, cert, crl, minVersion, maxVersion].every((value) => value === undefined)
  if (!isVerified && isPlain) return mode
  return {
    rejectUnauthorized: isVerified,
    checksHost: mode === 'verify-full',
    ...pickDefined('ca', root === undefined || root === 'system' ? undefined : readText('sslrootcert', root)),
    ...pickDefined('cert', cert === undefined ? undefined : readText('sslcert', cert)),
    ...pickDefined('key', key === undefined ? undefined : readText('sslkey', key)),
    ...pickDefined('crl', crl === undefined ? undefined : readText('sslcrl', crl)),
    ...pickDefined('passphrase', passphrase),
    ...pickDefined('minVersion', minVersion),
    ...pickDefined('maxVersion', maxVersion),
  }
}

const tlsVersions = ['TLSv1', 'TLSv1.1', 'TLSv1.2', 'TLSv1.3']

function tlsVersion(text: string | undefined): string | undefined {
  if (text !== undefined && !tlsVersions.includes(text))
    throw refused(`a version of TLS is one of ${tlsVersions.join(', ')}`)
  return text
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
  take: Take,
  environment: { [variable: string]: string | undefined },
): string | undefined {
  const namedPath = take('passfile', 'PGPASSFILE')
  const path = namedPath ?? join(environment['HOME'] ?? '/', '.pgpass')
  const stat = statSync(path, { throwIfNoEntry: false })
  if (stat === undefined) return undefined
  // As in libpq. Without an error the operator would search for a wrong password.
  if ((stat.mode & 0o077) !== 0)
    throw refused('the password file must not be accessible to others (chmod 600)')
  const user = username ?? userInfo().username
  const isFor = (pattern: string | undefined, value: string) => pattern === '*' || pattern === value
  for (const line of readText('passfile', path).split(/\r*(?:\n|$)/)) {
    const fields = (line.match(/(?:^|(?<=:))(?:\\.|[^:\\])*/g) ?? []).map((field) =>
      field.replace(/\\(.)/g, '$1'),
    )
    const [host, port, name, account, password] = fields
    const isOurs = servers.some((server) => {
      const isSocket = server.host.startsWith('/') && host === 'localhost'
      return (isFor(host, server.host) || isSocket) && isFor(port, String(server.port))
    })
    if (!line.startsWith('#') && isOurs && isFor(name, database ?? user) && isFor(account, user))
      return password
  }
  return undefined
}
