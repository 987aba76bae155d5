/** Gives every way an attempt can fail one stable code and a sentence, and says whose fault it is. */
import { SealedError } from '../../system/secrets.ts'

export interface Fault {
  code: string
  message: string
  /** Our own fault or our own network's: uses up no retry. */
  ours: boolean
  /** For the operator's log only. */
  detail?: string
}

const theirs = (code: string, message: string): Fault => ({ code, message, ours: false })
const ours = (code: string, message: string): Fault => ({ code, message, ours: true })

/** By the `code` (or else the name) of what the runtime throws. */
const known: { [code: string]: Fault } = {
  ECONNREFUSED: theirs('connection_refused', 'nothing listens there'),
  ECONNRESET: theirs('connection_reset', 'the receiver closed the connection without a whole answer'),
  EPIPE: theirs('connection_reset', 'the receiver closed the connection while it was sent to'),
  ETIMEDOUT: theirs('timeout', 'the receiver did not answer'),
  EHOSTUNREACH: theirs('unreachable', 'no route leads to the receiver'),
  EPROTO: theirs('tls_failed', 'the receiver does not speak TLS there'),
  EMSGSIZE: theirs('too_large', 'the message does not fit into a datagram'),
  Malformed_HTTP_Response: theirs('bad_answer', 'the receiver did not answer in HTTP'),
  HTTPParserError: theirs('bad_answer', 'the receiver did not answer in HTTP'),
  InvalidContentLength: theirs('bad_answer', 'the receiver answered with a wrong content-length'),
  PROXY_REFUSED: theirs('proxy_refused', 'the proxy did not connect to the receiver'),
  PROXY_UNREACHABLE: ours('proxy_down', 'the proxy is out of reach'),
  PROXY_CREDENTIALS: ours('proxy_credentials', 'the proxy wants other credentials'),
  // Everything fails like this while our own link, or the process itself, is short of something.
  ENETUNREACH: ours('network_down', 'this machine has no network to the receiver'),
  ENETDOWN: ours('network_down', 'the network of this machine is down'),
  EADDRNOTAVAIL: ours('network_down', 'this machine has no address to send from'),
  EMFILE: ours('out_of_files', 'this process has no file descriptor left'),
  ENFILE: ours('out_of_files', 'this machine has no file descriptor left'),
  ENOBUFS: ours('out_of_memory', 'this machine has no buffer left'),
  ENOMEM: ours('out_of_memory', 'this machine has no memory left'),
  ENOSPC: ours('disk_full', 'the disk of the sink folder is full'),
  EDQUOT: ours('disk_full', 'the quota of the sink folder is used up'),
  EACCES: ours('sink_not_writable', 'the sink file does not take writes'),
  EPERM: ours('sink_not_writable', 'the sink file does not take writes'),
  EROFS: ours('sink_not_writable', 'the sink folder is mounted read-only'),
  EIO: ours('disk_failed', 'the disk of the sink folder failed'),
  ELOOP: ours('sink_not_writable', 'the sink path leads over a symbolic link'),
  ENOTDIR: ours('sink_not_writable', 'a part of the sink path is not a folder'),
  ENOENT: ours('sink_not_writable', 'the sink folder is not there'),
}

/** The fault behind what a delivery threw. `stopping`: the appliance itself cut the attempt off. */
export function classify(thrown: unknown, stopping: boolean): Fault {
  if (thrown instanceof SealedError)
    return ours('secret_sealed', 'the signing secret does not open; rotate it')
  if (stopping) return ours('interrupted', 'the appliance was stopped before the answer came')
  const error = thrown instanceof Error ? thrown : new Error(String(thrown))
  if (error.name === 'TimeoutError' || error.name === 'AbortError') {
    return theirs('timeout', 'no whole answer came in time')
  }
  const code = 'code' in error ? String(error.code) : ''
  const found = known[code]
  if (found !== undefined) return found
  if (/CERT|SIGNATURE|ISSUER|SELF_SIGNED|TLS|SSL/.test(code)) {
    return theirs('certificate_refused', `the receiver's certificate was refused (${code.toLowerCase()})`)
  }
  return theirs(
    'connection_failed',
    code === '' ? 'the connection failed' : `the connection failed (${code})`,
  )
}

/** A status that is not 2xx. */
export function statusFault(status: number): Fault {
  if (status >= 300 && status < 400) {
    return theirs(`http_${status}`, 'the receiver redirects, and redirects are not followed')
  }
  return theirs(`http_${status}`, `the receiver answered ${status}`)
}

export function faultText({ code, message }: Fault): string {
  return `${code}: ${message}`
}

/** What `classify` knows: the proxy is out of reach, wants other credentials, or could not get to the receiver. */
type ProxyCode = 'PROXY_UNREACHABLE' | 'PROXY_CREDENTIALS' | 'PROXY_REFUSED'

/** All of them come before the proxy took the connection: with a proxy nothing else is connected to. */
const neverReached = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EHOSTUNREACH', 'ENETUNREACH', 'EADDRNOTAVAIL'])

/** The error under the proxy's own code, or as it was when it says nothing about the proxy. */
export function proxyFault(thrown: unknown): unknown {
  const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : ''
  if (neverReached.has(code)) return coded('PROXY_UNREACHABLE', thrown)
  if (code !== 'ERR_PROXY_TUNNEL') return thrown
  // "Proxy refused to open a tunnel: 407 Proxy Authentication Required"
  const isCredentials = / 407\b/.test(thrown instanceof Error ? thrown.message : '')
  return coded(isCredentials ? 'PROXY_CREDENTIALS' : 'PROXY_REFUSED', thrown)
}

/** For http there is no tunnel: the proxy answers in the receiver's place, and 407 is its own. */
export function credentialsRefused(): Error {
  return coded('PROXY_CREDENTIALS', undefined)
}

function coded(code: ProxyCode, cause: unknown): Error {
  return Object.assign(new Error(code, { cause }), { code })
}
