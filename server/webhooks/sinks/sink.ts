/**
 * What a kind of destination implements, and how it reports failures. Each kind is one file in this folder and one line
 * in the table of `destination.ts`.
 */
import { DecryptionError, type SecretBox } from '../../system/encryption.ts'
import type { Claim } from '../../../db/contract/webhooks.ts'
import type { Clock } from '../../clock.ts'

export interface Sink<Target = unknown> {
  /** The schemes of its URLs, as `URL.protocol` writes them. */
  schemes: readonly string[]
  /** Reads a URL without a name lookup; throws `RefusedUrl`. */
  parse(url: URL, text: string, options: SinkOptions): Target
  /** Refuses destinations that are never allowed; returns the URL to store. Makes no name lookup. */
  check(target: Target, text: string, options: SinkOptions): string
  /** Delivers one message; null when the destination sends no response. Rejects when the delivery failed. */
  send(target: Target, message: Message, options: SendOptions): Promise<SinkResponse | null>
}

export interface SinkOptions {
  resolve: Resolve
  sinkDir: string | null // null: file sinks are disabled
}

export type Resolution =
  | { kind: 'addresses'; addresses: string[] }
  | { kind: 'refused'; address: string; reason: string }
  | { kind: 'unknown' } // the name server says that the name does not exist
  | { kind: 'unanswered' } // no name server answered for this name
  | { kind: 'resolver_down' } // nor for names that resolved before: a local failure

export interface Resolve {
  (host: string): Promise<Resolution>
  /** The resolution of a host that needs no name server; null for every other host. */
  known(host: string): Resolution | null
}

export interface SendOptions extends SinkOptions {
  clock: Clock
  box: SecretBox
  version: string
  ca: string | null // additional certificate authorities, PEM
  proxy: string | null // for http and https
  atMs: number // of the attempt
  signal: AbortSignal
}

export type Message = Pick<Claim, 'delivery' | 'encryptedSecrets'>

export interface SinkResponse {
  status: number
  excerpt: string
  retryAfterMs: number | null
}

/** Every way an attempt can fail has a stable code and a sentence. */
export interface Failure {
  code: string
  message: string
  /** Caused by this appliance or its network, so it uses up no retry. */
  isLocal: boolean
  /** For the operator's log only. */
  detail?: string
}

export const remote = (code: string, message: string): Failure => ({ code, message, isLocal: false })
export const local = (code: string, message: string): Failure => ({ code, message, isLocal: true })

/** A failure that the sending code has classified itself. */
export class SendError extends Error {
  readonly failure: Failure
  constructor(failure: Failure) {
    super(failure.message)
    this.failure = failure
  }
}

/** A URL that no delivery may go to. The message completes the sentence "this URL is not allowed: …". */
export class RefusedUrl extends SendError {
  constructor(reason: string) {
    super(remote('url_blocked', reason))
  }
}

/** By the `code` of what the runtime throws. */
const byCode: { [code: string]: Failure } = {
  ECONNREFUSED: remote('connection_refused', 'the receiver refused the connection'),
  ECONNRESET: remote(
    'connection_reset',
    'the receiver closed the connection before the response was complete',
  ),
  EPIPE: remote('connection_reset', 'the receiver closed the connection during the request'),
  ETIMEDOUT: remote('timeout', 'the receiver did not respond'),
  EHOSTUNREACH: remote('unreachable', 'there is no route to the receiver'),
  EPROTO: remote('tls_failed', 'the TLS handshake with the receiver failed'),
  EMSGSIZE: remote('too_large', 'the message is too large for one datagram'),
  // Every delivery fails like this while this machine or this process lacks a resource.
  ENETUNREACH: local('network_down', 'this machine has no network route to the receiver'),
  ENETDOWN: local('network_down', 'the network of this machine is down'),
  EADDRNOTAVAIL: local('network_down', 'this machine has no local address to send from'),
  EMFILE: local('out_of_files', 'this process has no free file descriptors'),
  ENFILE: local('out_of_files', 'this machine has no free file descriptors'),
  ENOBUFS: local('out_of_memory', 'this machine has no free network buffers'),
  ENOMEM: local('out_of_memory', 'this machine is out of memory'),
  ENOSPC: local('disk_full', 'the disk with the sink folder is full'),
  EDQUOT: local('disk_full', 'the disk quota of the sink folder is used up'),
  EACCES: local('sink_not_writable', 'the sink file is not writable'),
  EPERM: local('sink_not_writable', 'the sink file is not writable'),
  EROFS: local('sink_not_writable', 'the sink folder is mounted read-only'),
  EIO: local('disk_failed', 'the disk with the sink folder failed'),
  ELOOP: local('sink_not_writable', 'the sink path contains a symbolic link'),
  ENOTFILE: local('sink_not_writable', 'the sink path is not a file'),
  ENXIO: local('sink_not_writable', 'the sink path is not a file'),
  EHANG: local('disk_failed', 'the sink folder does not answer'),
  ENOTDIR: local('sink_not_writable', 'part of the sink path is not a folder'),
  ENOENT: local('sink_not_writable', 'the sink folder does not exist'),
}

/** Classifies what an attempt threw. `stopping`: the appliance itself aborted the attempt. */
export function classify(thrown: unknown, stopping: boolean): Failure {
  if (thrown instanceof SendError) return thrown.failure
  if (thrown instanceof DecryptionError)
    return local('secret_sealed', 'the signing secret cannot be decrypted; rotate it')
  if (stopping) return local('interrupted', 'the appliance stopped before the response arrived')
  const error = thrown instanceof Error ? thrown : new Error(String(thrown))
  if (error.name === 'TimeoutError' || error.name === 'AbortError') {
    return remote('timeout', 'the response was not complete in time')
  }
  const code = 'code' in error ? String(error.code) : ''
  const knownFailure = byCode[code]
  if (knownFailure !== undefined) return knownFailure
  if (/CERT|SIGNATURE|ISSUER|SELF_SIGNED|TLS|SSL/.test(code)) {
    return remote('certificate_refused', `the receiver's certificate was rejected (${code.toLowerCase()})`)
  }
  return remote(
    'connection_failed',
    code === '' ? 'the connection failed' : `the connection failed (${code})`,
  )
}

/** For a status that is not 2xx. */
export function statusFailure(status: number): Failure {
  if (status >= 300 && status < 400) {
    return remote(`http_${status}`, `the receiver answered ${status}, and redirects are not followed`)
  }
  return remote(`http_${status}`, `the receiver answered ${status}`)
}

export function failureText({ code, message }: Failure): string {
  return `${code}: ${message}`
}
