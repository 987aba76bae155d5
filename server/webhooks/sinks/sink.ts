/** What a kind of destination implements. Each kind is one file in this folder and one line in `table.ts`. */
import type { Claim } from '../../../db/contract/webhooks.ts'
import type { Clock } from '../../clock.ts'
import type { SecretBox } from '../../system/encryption.ts'
import type { Resolve } from './addresses.ts'

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

export interface SendOptions extends SinkOptions {
  clock: Clock
  box: SecretBox
  version: string
  ca: string | null // additional certificate authorities, PEM
  proxy: string | null // for http and https
  atMs: number // of the attempt
  signal: AbortSignal
}

export type Message = Pick<Claim, 'delivery' | 'sealedSecrets'>

export interface SinkResponse {
  status: number
  excerpt: string
  retryAfterMs: number | null
}
