/** The options and the result of `createIntelExporter`. */
import type { Exporter } from '../client/client-options.ts'
import type { CompleteEvent } from '../client/event.ts'
import type { OnError } from '../client/problem.ts'
import type { Fetch } from '../wire/connection.ts'

export interface IntelExporterOptions {
  /** Address of the appliance, such as https://sightglass.example. */
  url: string
  /** `agtx_ik_…`, from Settings → SDK ingest keys. Use it on servers only. */
  ingestKey: string
  /** A batch is sent when it has this many events … Default: 500. */
  batchEventsMax?: number
  /** … or this many bytes … Default: 1 MiB. */
  batchBytesMax?: number
  /** … or after this time. Default: 1,000. */
  intervalMs?: number
  /** Maximum number of queued events; more are dropped and counted. Default: 200,000. */
  queueEventsMax?: number
  /** Maximum bytes of queued events. Default: 64 MiB. */
  queueBytesMax?: number
  /** Default: true, except for an appliance on the same machine. */
  gzip?: boolean
  /** Path of a file that stores queued events across restarts of the process. Node.js, Bun and Deno only. */
  spool?: string
  requestTimeoutMs?: number
  /** First and longest pause between attempts. Default: 500 and 30,000. */
  backoffMinMs?: number
  backoffMaxMs?: number
  /** How long `close` and the exit of the process wait for the last events. Default: 5,000. */
  closeTimeoutMs?: number
  /** Receives problems. Default: `onError` of the client. */
  onError?: OnError
  fetch?: Fetch
}

/** Counts since the exporter was created. */
export interface ExporterStats {
  accepted: number
  deduped: number
  rejected: number
  requests: number
  queued: number
  queuedBytes: number
  /** Events dropped because the queue was full. */
  dropped: number
  /** Why the appliance refuses events, or null. */
  refusal: string | null
}

export interface IntelExporter extends Exporter {
  /** False when the event was dropped or too large. */
  export(event: CompleteEvent): boolean
  /** True when all events queued before the call were sent in time. */
  flush(timeoutMs?: number): Promise<boolean>
  /** True when all events were sent. The next process sends the rest of a spool. */
  close(timeoutMs?: number): Promise<boolean>
  stats(): ExporterStats
}
