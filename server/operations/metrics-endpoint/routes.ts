/** GET /metrics in Prometheus text 0.0.4: with the metrics token or on the metrics listener, otherwise 404. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { Elysia } from 'elysia'
import type { AccessReceiver, BadLineCount, RequestCount } from '../../access/receiver.ts'
import type { SyslogListener, SyslogReport } from '../../access/syslog.ts'
import { AppError } from '../../errors.ts'
import { contextOf, readQuery } from '../../http/request.ts'
import { unauthorized } from '../../http/guard.ts'
import type { Store, StoreHealth, StoreTimes } from '../../../db/contract/store.ts'
import type { Backlog } from '../../../db/contract/nodes.ts'
import type { Clock } from '../../clock.ts'
import type { DiskWatch, FsyncProbe } from '../../system/disk.ts'
import type { JobReport, Jobs } from '../../system/scheduler.ts'
import type { IngestCounts, IngestTotals } from '../../ingest/counts.ts'
import type { HttpTimes, WebhookOutcomes } from './counters.ts'
import { alertSamples } from '../../webhooks/alerts/alerts.ts'
import { seenMsMax, type SharedNode } from '../../system/shared-node.ts'
import type { Recount } from '../retention/recount.ts'
import type { Histogram } from '../../../db/contract/histogram.ts'

interface PrometheusRoutesServices {
  store: Store
  clock: Clock
  version: string
  disk: DiskWatch
  fsyncProbe: FsyncProbe
  jobs: Pick<Jobs, 'late' | 'report'>
  ingestCounts: IngestCounts
  recount: Recount
  httpTimes: HttpTimes
  webhookOutcomes: WebhookOutcomes
  metricsToken: string | null
  node: Pick<SharedNode, 'name' | 'clock' | 'aheadMs'> | null
  streams: Set<AbortController>
  syslogListeners: SyslogListener[]
  accessReceiver: AccessReceiver
  scheduledReports: { metrics(): Metric[] }
}

export function prometheusRoutes(services: PrometheusRoutesServices) {
  const readStore = storeMetrics(services)
  return new Elysia().get('/metrics', async ({ request }) => {
    admit(request, services.metricsToken)
    readQuery(request, {})
    const { health, times, shared, alerts } = await readStore()
    const gathered: Gathered = {
      version: services.version,
      ingest: services.ingestCounts.totals(),
      repairedRows: services.recount.repaired(),
      queue: services.store.events.pressure(),
      times,
      fsync: services.fsyncProbe.times(),
      diskFreeBytes: services.disk.freeBytes(),
      jobs: services.jobs.report(),
      now: services.clock.now(),
      webhooks: services.webhookOutcomes.totals(),
      http: services.httpTimes.report(),
      liveStreams: services.streams.size,
      memoryBytes: process.memoryUsage.rss(),
      syslog: services.syslogListeners.map((listener) => listener.report()),
      requests: services.accessReceiver.requests(),
      badLines: services.accessReceiver.badLines(),
    }
    const { node } = services
    const ownMetrics = [...metricsOf(gathered), ...services.scheduledReports.metrics()]
    const allMetrics =
      node === null || shared === null
        ? [...ownMetrics, ...databaseMetrics(health)]
        : [
            ...labelled([...ownMetrics, ...nodeMetrics(services.store, node)], { node: node.name }),
            ...databaseMetrics(health, shared),
          ]
    const text = exposition([...allMetrics, alerts])
    return new Response(text, { headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' } })
  })
}

/** Throws 404 where metrics are not offered, 401 without the right token. */
function admit(request: Request, token: string | null): void {
  if (contextOf(request).listener === 'metrics') return
  if (token === null) throw new AppError('not_found', 'No such page or endpoint.')
  const bearerToken = /^bearer +(\S+) *$/i.exec(request.headers.get('authorization') ?? '')?.[1]
  if (bearerToken === undefined)
    throw unauthorized(
      'missing_bearer',
      'Send the metrics token in the header "Authorization: Bearer <token>".',
    )
  const digest = (text: string) => createHash('sha256').update(text).digest()
  if (!timingSafeEqual(digest(bearerToken), digest(token)))
    throw unauthorized('invalid_key', 'Invalid metrics token.')
}

const patienceMs = 10

interface OfStore {
  health: StoreHealth
  times: StoreTimes
  shared: Shared | null
  alerts: Metric
}

/** Of a database that nodes share. */
interface Shared {
  nodes: { running: number; missing: number }
  backlog: Backlog
  now: number // of the database
}

async function readShared(store: Store, { clock }: Pick<SharedNode, 'clock'>): Promise<Shared> {
  const now = clock.now()
  const [nodes, backlog] = await Promise.all([store.nodes.list({ now }), store.nodes.backlog({ now })])
  const running = nodes.filter(({ seenAtMs }) => now - seenAtMs <= seenMsMax).length
  return { nodes: { running, missing: nodes.length - running }, backlog, now }
}

/** The store's own metrics. When its threads are too busy to respond in time, returns the previous ones. */
function storeMetrics({
  store,
  node,
}: Pick<PrometheusRoutesServices, 'store' | 'node'>): () => Promise<OfStore> {
  let last: OfStore | null = null
  let asking: Promise<OfStore> | null = null
  const ask = () => {
    const shared = node === null ? null : readShared(store, node)
    asking ??= Promise.all([store.health(), store.times(), shared, alertMetric(store)])
      .then(([health, times, shared, alerts]) => (last = { health, times, shared, alerts }))
      .finally(() => (asking = null))
    return asking
  }
  return async () => {
    const fresh = ask()
    if (last === null) return fresh
    const lastReport = last
    fresh.catch(() => undefined) // retried by the next scrape
    return Promise.race([fresh.catch(() => lastReport), Bun.sleep(patienceMs).then(() => lastReport)])
  }
}

interface Gathered {
  version: string
  ingest: Readonly<IngestTotals>
  repairedRows: number
  queue: { queuedBytes: number; oldestMs: number }
  times: StoreTimes
  fsync: Histogram
  diskFreeBytes: number
  jobs: JobReport[]
  now: number
  webhooks: ReturnType<WebhookOutcomes['totals']>
  http: ReturnType<HttpTimes['report']>
  liveStreams: number
  memoryBytes: number
  syslog: SyslogReport[]
  requests: RequestCount[]
  badLines: BadLineCount[]
}

/** Of the process. */
function metricsOf(snapshot: Gathered): AnyMetric[] {
  return [
    gauge('build_info', 'The running release.', 1, { version: snapshot.version }),
    ...ingestMetrics(snapshot.ingest),
    gauge('queue_bytes', 'Bytes of events that are waiting to be written.', snapshot.queue.queuedBytes),
    gauge('queue_oldest_seconds', 'Age of the oldest queued event.', snapshot.queue.oldestMs / 1_000),
    times('commit_seconds', 'Duration of database commits, fsync included.', snapshot.times.commit),
    times('fsync_seconds', 'Duration of a 4 KiB write with fsync, probed every 10 s.', snapshot.fsync),
    times(
      'append_seconds',
      'Duration from accepting a batch of events to its acknowledgement.',
      snapshot.times.append,
    ),
    gauge('disk_free_bytes', 'Free disk space of the data folder.', snapshot.diskFreeBytes),
    gauge('memory_bytes', 'Resident memory of the process.', snapshot.memoryBytes),
    gauge('live_streams', 'Open live streams and queries with progress.', snapshot.liveStreams),
    counter('rollup_repaired_total', 'Rollup rows that a recount repaired; expected: 0.', [
      { value: snapshot.repairedRows },
    ]),
    ...syslogMetrics(snapshot),
    ...requestMetrics(snapshot),
    ...badLineMetrics(snapshot),
    ...jobMetrics(snapshot),
    counter('webhook_attempts_total', 'Webhook attempts by outcome.', [
      { labels: { outcome: 'delivered' }, value: snapshot.webhooks.delivered },
      { labels: { outcome: 'retry' }, value: snapshot.webhooks.retried },
      { labels: { outcome: 'dead_letter' }, value: snapshot.webhooks.deadLettered },
    ]),
    {
      name: 'sightglass_http_request_seconds',
      help: 'Response time by route; streams until the first byte.',
      kind: 'histogram',
      samples: snapshot.http.map(({ route, method, status, histogram }) => ({
        labels: { route, method, status },
        histogram,
      })),
    },
  ]
}

const sameOnEveryNode = ' Of the database: every node reports the same, so take the maximum and not the sum.'

/** Of the whole database. Its nodes report the same numbers, so these series carry no node. */
function databaseMetrics({ bytes, logBytes }: StoreHealth, shared: Shared | null = null): Metric[] {
  const log = logBytes === null ? [] : [gauge('wal_bytes', 'The write-ahead log.', logBytes)]
  const size = 'Size of the database and its write-ahead log.'
  if (shared === null) return [...log, gauge('store_bytes', size, bytes)]
  const { nodes, backlog, now } = shared
  const ofAll = (name: string, help: string, value: number) => gauge(name, help + sameOnEveryNode, value)
  const oldestMs = backlog.oldestDueAtMs === null ? 0 : Math.max(0, now - backlog.oldestDueAtMs)
  return [
    ofAll('store_bytes', 'Size of the database.', bytes),
    ofAll('nodes_running', 'Nodes that were seen within 20 s.', nodes.running),
    ofAll('nodes_missing', 'Nodes that were seen within a day, but not within 20 s.', nodes.missing),
    ofAll('unfolded_events', 'Stored events that are not in the hourly counts yet.', backlog.unfolded),
    ofAll(
      'undispatched_events',
      'Events that the slowest active webhook endpoint has not been offered yet.',
      backlog.undispatched,
    ),
    ofAll('webhook_due_deliveries', 'Deliveries that are due and not being sent.', backlog.deliveriesDue),
    ofAll('webhook_oldest_due_seconds', 'Age of the oldest of these deliveries.', oldestMs / 1_000),
  ]
}

/** Of one node among those that share a database. */
function nodeMetrics(store: Store, node: Pick<SharedNode, 'aheadMs'>): Metric[] {
  const { viewMs = 0, upkeep = null } = store.behind() ?? {}
  const { runs = 0, failures = 0, failingMs = null, ageMs = 0 } = upkeep ?? {}
  return [
    gauge('clock_ahead_seconds', 'How far the clock is ahead of the database.', node.aheadMs() / 1_000),
    gauge('view_age_seconds', 'Age of the view of the changes of other nodes.', viewMs / 1_000),
    counter('upkeep_runs_total', 'Runs of the background work.', [{ value: runs }]),
    counter('upkeep_failures_total', 'Failed runs of the background work.', [{ value: failures }]),
    gauge('upkeep_failing', '1 when the last run of the background work failed.', failingMs === null ? 0 : 1),
    gauge('upkeep_age_seconds', 'Time since the last run of the background work ended.', ageMs / 1_000),
  ]
}

/** Of the whole database, so it carries no node. */
async function alertMetric({ webhooks, orgs }: Store): Promise<Metric> {
  const reads = [webhooks.openIncidents(null), webhooks.rules(null), orgs.list()] as const
  const [incidents, rules, allOrgs] = await Promise.all(reads)
  const slugs = new Map(allOrgs.map(({ id, slug }) => [id, slug]))
  const samples = alertSamples(incidents, rules, slugs)
  return { name: 'sightglass_alerts', help: 'Alerts that are pending or firing.', kind: 'gauge', samples }
}

function labelled(metrics: AnyMetric[], labels: Labels): AnyMetric[] {
  return metrics.map((metric): AnyMetric =>
    metric.kind === 'histogram'
      ? {
          ...metric,
          samples: metric.samples.map((sample) => ({ ...sample, labels: { ...labels, ...sample.labels } })),
        }
      : {
          ...metric,
          samples: metric.samples.map((sample) => ({ ...sample, labels: { ...labels, ...sample.labels } })),
        },
  )
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

/** Nothing without `--listen-syslog`. */
function syslogMetrics({ syslog }: Pick<Gathered, 'syslog'>): Metric[] {
  if (syslog.length === 0) return []
  const listSamples = (value: (report: SyslogReport) => number) =>
    syslog.map((report) => ({ labels: { listen: report.listen }, value: value(report) }))
  return [
    counter(
      'syslog_lines_total',
      'Lines received by syslog.',
      listSamples(({ received }) => received),
    ),
    counter(
      'syslog_dropped_total',
      'Lines received by syslog that were dropped.',
      listSamples(({ dropped }) => dropped),
    ),
    counter(
      'syslog_bad_lines_total',
      'Lines received by syslog that fit no format.',
      listSamples(({ bad }) => bad),
    ),
  ]
}

/** Nothing while every line is read. */
function badLineMetrics({ badLines }: Pick<Gathered, 'badLines'>): Metric[] {
  if (badLines.length === 0) return []
  const samples = badLines.map(({ door, lines }) => ({ labels: { door }, value: lines }))
  const help =
    'Lines of access logs that were followed, sent or received by syslog and do not fit their format.'
  return [counter('access_bad_lines_total', help, samples)]
}

/** Nothing without access logs. */
function requestMetrics({ requests }: Pick<Gathered, 'requests'>): Metric[] {
  if (requests.length === 0) return []
  const samples = requests.map(({ kind, verdict, requests: value }) => ({
    labels: { kind, ...(verdict !== null && { verdict }) },
    value,
  }))
  const help = 'Requests in access logs that were followed, sent or received by syslog, by kind and verdict.'
  return [counter('access_requests_total', help, samples)]
}

function jobMetrics({ jobs, now }: Pick<Gathered, 'jobs' | 'now'>): Metric[] {
  const listSamples = (value: (job: JobReport) => number) =>
    jobs.map((job) => ({ labels: { job: job.id }, value: value(job) }))
  return [
    counter(
      'job_runs_total',
      'Runs of scheduled jobs.',
      listSamples(({ runs }) => runs),
    ),
    counter(
      'job_failures_total',
      'Failed runs of scheduled jobs.',
      listSamples(({ failures }) => failures),
    ),
    {
      ...gauge('job_seconds', 'Duration of the last run.', 0),
      samples: listSamples(({ lastMs }) => lastMs / 1_000),
    },
    {
      ...gauge('job_age_seconds', 'Time since the last run ended, or since the start.', 0),
      samples: listSamples(({ lastEndMs }) => Math.max(0, now - lastEndMs) / 1_000),
    },
    {
      ...gauge('job_late', '1 when the last run failed or three runs were missed.', 0),
      samples: listSamples(({ late }) => (late ? 1 : 0)),
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

type AnyMetric = Metric | HistogramMetric

function exposition(metrics: AnyMetric[]): string {
  return metrics.map(metricText).join('')
}

function metricText(metric: AnyMetric): string {
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
  const buckets = counts.map((count, index) => {
    total += count
    const bound = boundsMs[index]
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
