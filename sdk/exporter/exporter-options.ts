/** What `createIntelExporter` takes and gives. */
import type { Exporter } from '../client/client-options.ts'
import type { CompleteEvent } from '../client/event.ts'
import type { OnError } from '../client/problem.ts'
import type { Fetch } from '../wire/connection.ts'

export interface IntelExporterOptions {
  /** Address of the appliance, such as https://sightglass.example. */
  url: string
  /** `agtx_ik_…`, from Settings → SDK ingest keys. It belongs on the server only. */
  ingestKey: string
  /** A batch is sent when it has so many events, 500 by default, … */
  batchEventsMax?: number
  /** … or so many bytes, 1 MiB by default, … */
  batchBytesMax?: number
  /** … or after this time, 1,000 by default. */
  intervalMs?: number
  /** Events that wait while the appliance is away: 200,000 by default; further ones are dropped and counted. */
  queueEventsMax?: number
  /** The same in bytes, 64 MiB by default. */
  queueBytesMax?: number
  /** True by default, except for an appliance on the same machine. */
  gzip?: boolean
  /** Path of a file that keeps events until the appliance has them, over restarts of this process. Node, Bun, Deno. */
  spool?: string
  requestTimeoutMs?: number
  /** First and longest pause between attempts, 500 and 30,000 by default. */
  backoffMinMs?: number
  backoffMaxMs?: number
  /** How long `close` and the end of the process wait for the last events, 5,000 by default. */
  closeTimeoutMs?: number
  /** Hears of problems. Without it the client's `onError` does. */
  onError?: OnError
  fetch?: Fetch
}

/** Since the start of the exporter. */
export interface ExporterStats {
  accepted: number
  deduped: number
  rejected: number
  requests: number
  queued: number
  queuedBytes: number
  /** Events that found the queue full and are lost. */
  dropped: number
  /** Why nothing can be sent at the moment, or null. */
  refusal: string | null
}

export interface IntelExporter extends Exporter {
  /** False when the event was dropped or too large. */
  export(event: CompleteEvent): boolean
  /** True when everything queued before the call left the queue in time. */
  flush(timeoutMs?: number): Promise<boolean>
  /** True when nothing was left unsent. What is in a spool is sent by the next process. */
  close(timeoutMs?: number): Promise<boolean>
  stats(): ExporterStats
}
