/** The verbs of nodes: their registry, leases of the jobs that one of them runs, and versions of what they cache. */
import { StoreError } from '../../contract/errors.ts'
import type { Backlog, JobLease, JobStore, Node, NodeReport, NodeStore } from '../../contract/nodes.ts'
import type { Database } from '../database.ts'
import type { ReadContext, WriteContext } from '../contexts.ts'
import { storedLastSeq } from '../events/blocks/block-table.ts'
import { placeOf } from '../events/blocks/block.ts'
import { dayMs } from '../../contract/units.ts'

export const nodeWriteVerbs = {
  'nodes.register': register,
  'nodes.heartbeat': heartbeat,
  'nodes.leave': leave,
  'jobs.claim': claim,
  'jobs.renew': renew,
  'jobs.release': release,
} satisfies { [verb: string]: (context: WriteContext, command: never) => unknown }

export const nodeReadVerbs = {
  'nodes.list': listNodes,
  'nodes.backlog': readBacklog,
  changes: ({ db }: ReadContext) => readChanges(db),
  eventVersion: ({ db }: ReadContext, orgId: string) => readEventVersion(db, orgId),
} satisfies { [verb: string]: (context: ReadContext, query: never) => unknown }

function register(
  { db, schema }: WriteContext,
  { node, now }: Parameters<NodeStore['register']>[0],
): { startedAtMs: number } {
  const atMs = db.dialect.storeMs(db, now)
  db.query('DELETE FROM node WHERE seen_at_ms < ?').run(atMs - dayMs)
  db.query(
    `INSERT INTO node (name, version, role, started_at_ms, seen_at_ms, schema) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
     ON CONFLICT (name) DO UPDATE SET version = excluded.version, role = excluded.role, schema = excluded.schema,
       started_at_ms = excluded.started_at_ms, seen_at_ms = excluded.seen_at_ms, report = NULL`,
  ).run(node.name, node.version, node.role, atMs, atMs, schema)
  const leasePrefix = `${node.name}/`
  db.query(
    'UPDATE webhook_delivery SET leased_until_ms = 0 WHERE lease_id IS NOT NULL AND substr(lease_id, 1, ?) = ?',
  ).run(leasePrefix.length, leasePrefix)
  return { startedAtMs: atMs }
}

function heartbeat(
  { db }: WriteContext,
  { name, report, now }: Parameters<NodeStore['heartbeat']>[0],
): { storeMs: number; startedAtMs: number } {
  const storeMs = db.dialect.storeMs(db, now)
  const nodeRow = db
    .query<{ startedAtMs: number }, [number, string | null, string]>(
      'UPDATE node SET seen_at_ms = ?, report = ? WHERE name = ? RETURNING started_at_ms AS startedAtMs',
    )
    .get(storeMs, report === null ? null : JSON.stringify(report), name)
  if (nodeRow === null) throw new StoreError('not_found', `the node ${name} is not registered`)
  return { storeMs, startedAtMs: nodeRow.startedAtMs }
}

function leave({ db }: WriteContext, { name, startedAtMs }: Parameters<NodeStore['leave']>[0]): void {
  db.query('DELETE FROM node WHERE name = ? AND started_at_ms = ?').run(name, startedAtMs)
}

function listNodes({ db }: ReadContext, { now }: Parameters<NodeStore['list']>[0]): Node[] {
  return db
    .query<Omit<Node, 'report'> & { report: string | null }, [number]>(
      `SELECT name, version, role, schema, started_at_ms AS startedAtMs, seen_at_ms AS seenAtMs, report FROM node
       WHERE seen_at_ms >= ? ORDER BY name`,
    )
    .all(db.dialect.storeMs(db, now) - dayMs)
    .map((row) => ({ ...row, report: readReport(row.report) }))
}

/** A node of another release may say more, or less. */
function readReport(text: string | null): NodeReport | null {
  if (text === null) return null
  const report = JSON.parse(text) as Partial<NodeReport>
  if (report.aheadMs === undefined) return null
  const { aheadMs, queuedBytes = 0, queuedMs = 0, viewMs = 0, isEnding = false, problem = null } = report
  return { aheadMs, queuedBytes, queuedMs, viewMs, isEnding, problem }
}

function readBacklog({ db }: ReadContext, { now }: Parameters<NodeStore['backlog']>[0]): Backlog {
  const atMs = db.dialect.storeMs(db, now)
  let unfolded = 0
  let undispatched = 0
  const endpoints = db
    .query<{ orgId: string; position: number }, []>(
      `SELECT org_id AS orgId, MIN(position) AS position FROM webhook_endpoint WHERE status = 'active' GROUP BY org_id`,
    )
    .all()
  const positions = new Map(endpoints.map(({ orgId, position }) => [orgId, position]))
  for (const { orgId, lastSeq, foldedSeq } of readArrivals(db)) {
    unfolded += lastSeq - foldedSeq
    undispatched = Math.max(undispatched, lastSeq - (positions.get(orgId) ?? lastSeq))
  }
  const due = db
    .query<{ deliveries: number; oldest: number | null }, [number, number]>(
      `SELECT COUNT(*) AS deliveries, MIN(next_attempt_at_ms) AS oldest FROM webhook_delivery
       WHERE status = 'pending' AND next_attempt_at_ms <= ? AND (leased_until_ms IS NULL OR leased_until_ms <= ?)`,
    )
    .get(atMs, atMs)!
  return { unfolded, undispatched, deliveriesDue: due.deliveries, oldestDueAtMs: due.oldest }
}

function claim(
  { db }: WriteContext,
  { job, node, leaseMs, now }: Parameters<JobStore['claim']>[0],
): JobLease | null {
  const atMs = db.dialect.storeMs(db, now)
  const claimed = db
    .query<{ lease: number }, [string, string, number, number]>(
      `INSERT INTO job_lease (job, node, lease, until_ms) VALUES (?1, ?2, 1, ?3)
       ON CONFLICT (job) DO UPDATE SET node = excluded.node, lease = job_lease.lease + 1, until_ms = excluded.until_ms
       WHERE job_lease.node = excluded.node OR job_lease.until_ms <= ?4
       RETURNING lease`,
    )
    .get(job, node, atMs + leaseMs, atMs)
  return claimed === null ? null : { job, lease: claimed.lease }
}

function renew(context: WriteContext, command: Parameters<JobStore['renew']>[0]): boolean {
  return setEnd(context, command, command.leaseMs) > 0
}

function release(context: WriteContext, command: Parameters<JobStore['release']>[0]): void {
  setEnd(context, command, command.quietMs)
}

function setEnd(
  { db }: WriteContext,
  { job, lease, now }: JobLease & { now: number },
  afterMs: number,
): number {
  const untilMs = db.dialect.storeMs(db, now) + afterMs
  return db.query('UPDATE job_lease SET until_ms = ? WHERE job = ? AND lease = ?').run(untilMs, job, lease)
    .changes
}

/** Inside the transaction of a step that must not run twice. The lease is still ours while nobody has claimed it. */
export function requireLease(db: Database, { job, lease }: JobLease): void {
  const leaseRow = db.query('SELECT 1 FROM job_lease WHERE job = ? AND lease = ?').get(job, lease)
  if (leaseRow === null) throw new StoreError('conflict', `the lease of the job ${job} is lost`)
}

/** API keys and restricted sites. An organization's counts have a version of their own. */
export type CachedGroup = 'keys' | 'sites'

/** Call in the transaction that changes the group. */
export function noteChange(db: Database, group: CachedGroup): void {
  db.query(
    `INSERT INTO cache_version (name, version) VALUES (?, 1)
     ON CONFLICT (name) DO UPDATE SET version = cache_version.version + 1`,
  ).run(group)
}

export interface Changes {
  versions: { [group in CachedGroup]: number }
  /** The newest arrival number of each organization. */
  arrivals: { [orgId: string]: number }
}

function readChanges(db: Database): Changes {
  const versions = { keys: 0, sites: 0 }
  for (const { name, version } of db
    .query<{ name: CachedGroup; version: number }, []>('SELECT name, version FROM cache_version')
    .all())
    versions[name] = version
  const arrivals: Changes['arrivals'] = {}
  for (const { orgId, lastSeq } of readArrivals(db)) arrivals[orgId] = lastSeq
  return { versions, arrivals }
}

/** The newest arrival of each organization, and the newest that is in the hourly counts. */
function readArrivals(db: Database): { orgId: string; lastSeq: number; foldedSeq: number }[] {
  const perOrg = placeOf(1, 0)
  // One statement for all organizations, because a store polls it. The arrivals of an engine that moves `last_seq` with
  // every append need no block.
  const rows = db
    .query<
      { orgId: string; last: number; folded: number; num: number; newest: number | null },
      [number, number]
    >(
      `SELECT o.org_id AS orgId, o.num, o.last_seq AS last, o.folded_seq AS folded,
         (SELECT b.place + b.events - 1 FROM event_block b WHERE b.place >= o.num * CAST(?1 AS BIGINT)
            AND b.place < (o.num + 1) * CAST(?2 AS BIGINT) ORDER BY b.place DESC LIMIT 1) AS newest
       FROM event_org o`,
    )
    .all(perOrg, perOrg)
  return rows.map(({ orgId, last, folded, num, newest }) => ({
    orgId,
    lastSeq: Math.max(last, newest === null ? 0 : newest - placeOf(num, 0)),
    foldedSeq: folded,
  }))
}

/** Changes with every change of an organization's counts: by an append or otherwise. */
function readEventVersion(db: Database, orgId: string): string {
  const row = db
    .query<{ num: number; rewrites: number }, [string]>(
      'SELECT num, rewrites FROM event_org WHERE org_id = ?',
    )
    .get(orgId)
  return row === null ? '' : `${storedLastSeq(db, row.num)} ${row.rewrites}`
}
