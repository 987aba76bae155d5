/** Parameters of libpq that need no work here, and those that cannot be honored, each with what helps. */
import { refused } from './url.ts'

type Environment = { [variable: string]: string | undefined }

interface Parameter {
  variable?: string
  /** Values that mean what a session does anyway. Undefined: every value. */
  accepted?: RegExp
  /** Behind the name of the parameter, when a value is refused. */
  instead?: string
}

const ignored: Parameter = {}
const neverUsed = /^(?:0|disable|off)?$/

const noKerberos = 'sessions use no Kerberos; leave it out, or set it to prefer or disable'
const parameters: { [name: string]: Parameter } = {
  channel_binding: {
    variable: 'PGCHANNELBINDING',
    accepted: /^(?:disable|prefer)$/,
    instead:
      'the driver cannot bind a password to its TLS connection; leave it out, and set sslmode=verify-full to check the server',
  },
  client_encoding: {
    variable: 'PGCLIENTENCODING',
    accepted: /^(?:auto|utf-?8|unicode)$/i,
    instead: 'sessions use UTF8',
  },
  gssencmode: { variable: 'PGGSSENCMODE', accepted: /^(?:disable|prefer)$/, instead: noKerberos },
  gssdelegation: { accepted: neverUsed, instead: noKerberos },
  gsslib: ignored,
  krbsrvname: ignored,
  // The kernel's own values apply.
  keepalives_count: { accepted: /^\d+$/, instead: 'it must be a whole number' },
  keepalives_interval: { accepted: /^\d+$/, instead: 'it must be a whole number' },
  tcp_user_timeout: { accepted: /^\d+$/, instead: 'it must be a whole number' },
  replication: { accepted: /^(?:false|off|no|0)$/, instead: 'a node is no standby' },
  require_auth: {
    variable: 'PGREQUIREAUTH',
    accepted: /^$/,
    instead: 'leave it out, and allow the method in pg_hba.conf only',
  },
  requirepeer: {
    variable: 'PGREQUIREPEER',
    accepted: /^$/,
    instead: 'leave it out, and protect the folder of the socket',
  },
  service: { variable: 'PGSERVICE', accepted: /^$/, instead: 'write its parameters into the URL' },
  sslcertmode: {
    variable: 'PGSSLCERTMODE',
    accepted: /^(?:disable|allow)$/,
    instead: 'a certificate is sent when sslcert names one',
  },
  sslcompression: { accepted: neverUsed, instead: 'TLS connections are not compressed' },
  sslcrldir: { accepted: /^$/, instead: 'name one file with sslcrl' },
  sslnegotiation: {
    variable: 'PGSSLNEGOTIATION',
    accepted: /^postgres$/,
    instead: 'TLS begins after a request; leave it out',
  },
  sslsni: { accepted: /^1$/, instead: 'the name of the host is always sent' },
  // Of other drivers, which people copy.
  connection_limit: { accepted: /^$/, instead: 'a node has a fixed number of connections; leave it out' },
  pgbouncer: { accepted: /^false$/, instead: 'write prepare=false for a pooler' },
  schema: { accepted: /^$/, instead: 'write search_path=NAME' },
}

/** `unusedParameters` are the parameters that nothing has taken. */
export function requireSupported(
  unusedParameters: ReadonlyMap<string, string>,
  environment: Environment,
): void {
  for (const [name, value] of unusedParameters) {
    const parameter = Object.hasOwn(parameters, name) ? parameters[name] : undefined
    if (parameter === undefined) throw refused(`"${name}" is not a parameter of a PostgreSQL URL`)
    requireAccepted(`${name}=${value}`, value, parameter)
  }
  for (const [name, parameter] of Object.entries(parameters)) {
    const value = parameter.variable === undefined ? undefined : environment[parameter.variable]
    if (value && !unusedParameters.has(name))
      requireAccepted(`${parameter.variable}=${value}`, value, parameter)
  }
}

function requireAccepted(shown: string, value: string, { accepted, instead }: Parameter): void {
  if (accepted === undefined || accepted.test(value)) return
  throw refused(`${shown} is not supported: ${instead}`)
}
