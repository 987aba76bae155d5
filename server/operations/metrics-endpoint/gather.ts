/** Collects the metrics of a running server, in the text format of Prometheus, version 0.0.4. */
import type { Histogram } from '../../../db/rules/histogram.ts'
import type { StoreHealth, StoreTimes } from '../../../db/contract/store.ts'
import type { JobReport } from '../../system/scheduler.ts'
import type { IngestTotals } from '../../ingest/counts.ts'
import type { HttpTimes } from './counters.ts'
import type { WebhookOutcomes } from './counters.ts'

export interface Gathered {
  version: string
  ingest: Readonly<IngestTotals>
  repairedRows: number
  queue: { queuedBytes: number; oldestMs: number }
  times: StoreTimes
  fsync: Histogram
  health: StoreHealth
  diskFreeBytes: number
  jobs: JobReport[]
  now: number
  webhooks: ReturnType<WebhookOutcomes['totals']>
  http: ReturnType<HttpTimes['report']>
  liveStreams: number
  memoryBytes: number
}

export function metricsOf(of: Gathered): (Metric | HistogramMetric)[] {
  return [
    gauge('build_info', 'The running release.', 1, { version: of.version }),
    ...ingestMetrics(of.ingest),
    gauge('queue_bytes', 'Bytes of events that are waiting to be written.', of.queue.queuedBytes),
    gauge('queue_oldest_seconds', 'Age of the oldest queued event.', of.queue.oldestMs / 1_000),
    times('commit_seconds', 'Duration of database commits, fsync included.', of.times.commit),
    times('fsync_seconds', 'Duration of a 4 KiB write with fsync, probed every 10 s.', of.fsync),
    times(
      'append_seconds',
      'Duration from accepting a batch of events to its acknowledgement.',
      of.times.append,
    ),
    gauge('wal_bytes', 'The write-ahead log.', of.health.walBytes),
    gauge('store_bytes', 'Size of the database and its write-ahead log.', of.health.bytes),
    gauge('disk_free_bytes', 'Free disk space of the data folder.', of.diskFreeBytes),
    gauge('memory_bytes', 'Resident memory of the process.', of.memoryBytes),
    gauge('live_streams', 'Open live streams.', of.liveStreams),
    counter('rollup_repaired_total', 'Rollup rows that a recount repaired; expected: 0.', [
      { value: of.repairedRows },
    ]),
    ...jobMetrics(of),
    counter('webhook_attempts_total', 'Webhook attempts by outcome.', [
      { labels: { outcome: 'delivered' }, value: of.webhooks.delivered },
      { labels: { outcome: 'retry' }, value: of.webhooks.retried },
      { labels: { outcome: 'dead_letter' }, value: of.webhooks.deadLettered },
    ]),
    {
      name: 'sightglass_http_request_seconds',
      help: 'Response time by route; streams until the first byte.',
      kind: 'histogram',
      samples: of.http.map(({ route, method, status, histogram }) => ({
        labels: { route, method, status },
        histogram,
      })),
    },
  ]
}

function ingestMetrics({ requests, refused, accepted, deduped, rejected }: Readonly<IngestTotals>): Metric[] {
  return [
    counter('ingest_requests_total', 'Authenticated ingest requests.', [{ value: requests }]),
    counter('ingest_refused_requests_total', 'Ingest requests that were refused as a whole.', [
      { value: refused },
    ]),
    counter('ingest_events_total', 'Events by result.', [
      { labels: { outcome: 'accepted' }, value: accepted },
      { labels: { outcome: 'deduped' }, value: deduped },
      { labels: { outcome: 'rejected' }, value: rejected },
    ]),
  ]
}

function jobMetrics({ jobs, now }: Pick<Gathered, 'jobs' | 'now'>): Metric[] {
  const each = (value: (job: JobReport) => number) =>
    jobs.map((job) => ({ labels: { job: job.id }, value: value(job) }))
  return [
    counter(
      'job_runs_total',
      'Runs of scheduled jobs.',
      each(({ runs }) => runs),
    ),
    counter(
      'job_failures_total',
      'Failed runs of scheduled jobs.',
      each(({ failures }) => failures),
    ),
    {
      ...gauge('job_seconds', 'Duration of the last run.', 0),
      samples: each(({ lastMs }) => lastMs / 1_000),
    },
    {
      ...gauge('job_age_seconds', 'Time since the last run ended, or since the start.', 0),
      samples: each(({ lastEndMs }) => Math.max(0, now - lastEndMs) / 1_000),
    },
    {
      ...gauge('job_late', '1 when the last run failed or three runs were missed.', 0),
      samples: each(({ late }) => (late ? 1 : 0)),
    },
  ]
}

function gauge(name: string, help: string, value: number, labels?: { [name: string]: string }): Metric {
  const sample = labels === undefined ? { value } : { value, labels }
  return { name: `sightglass_${name}`, help, kind: 'gauge', samples: [sample] }
}

function counter(name: string, help: string, samples: Metric['samples']): Metric {
  return { name: `sightglass_${name}`, help, kind: 'counter', samples }
}

function times(name: string, help: string, histogram: Histogram): HistogramMetric {
  return { name: `sightglass_${name}`, help, kind: 'histogram', samples: [{ histogram }] }
}

type Labels = { [name: string]: string }

interface Sample {
  labels?: Labels
  value: number
}

interface Metric {
  name: string // sightglass_…, with its unit, counters with _total
  help: string
  kind: 'counter' | 'gauge'
  samples: Sample[]
}

interface HistogramMetric {
  name: string // with _seconds
  help: string
  kind: 'histogram'
  samples: { labels?: Labels; histogram: Histogram }[]
}

export function exposition(metrics: (Metric | HistogramMetric)[]): string {
  return metrics.map(metricText).join('')
}

function metricText(metric: Metric | HistogramMetric): string {
  const { name, help, kind } = metric
  const head = `# HELP ${name} ${help}\n# TYPE ${name} ${kind}\n`
  const lines =
    metric.kind === 'histogram'
      ? metric.samples.flatMap(({ labels = {}, histogram }) => histogramLines(name, labels, histogram))
      : metric.samples.map(({ labels = {}, value }) => line(name, labels, value))
  return head + lines.join('')
}

/** In the output, buckets are cumulative and in seconds. */
function histogramLines(name: string, labels: Labels, { boundsMs, counts, sumMs }: Histogram): string[] {
  let total = 0
  const buckets = counts.map((count, at) => {
    total += count
    const bound = boundsMs[at]
    const le = bound === undefined ? '+Inf' : String(bound / 1_000)
    return line(`${name}_bucket`, { ...labels, le }, total)
  })
  return [...buckets, line(`${name}_sum`, labels, sumMs / 1_000), line(`${name}_count`, labels, total)]
}

function line(name: string, labels: Labels, value: number): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text)}"`)
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}\n`
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
