/** The verbs of nodes: their registry, leases of the jobs that one of them runs, and versions of what they cache. */
import { StoreError } from '../../contract/errors.ts'
import type { JobLease, JobStore, Node, NodeStore } from '../../contract/nodes.ts'
import type { Database } from '../database.ts'
import type { ReadContext, WriteContext } from '../threads/contexts.ts'
import { storedLastSeq } from '../events/blocks/block-table.ts'
import { placeOf } from '../events/blocks/block.ts'

export const nodeWriteVerbs = {
  'nodes.register': register,
  'nodes.heartbeat': heartbeat,
  'jobs.claim': claim,
  'jobs.renew': renew,
  'jobs.release': release,
} satisfies { [verb: string]: (context: WriteContext, command: never) => unknown }

export const nodeReadVerbs = {
  'nodes.list': listNodes,
  changes: ({ db }: ReadContext) => readChanges(db),
  eventVersion: ({ db }: ReadContext, orgId: string) => readEventVersion(db, orgId),
} satisfies { [verb: string]: (context: ReadContext, query: never) => unknown }

const dayMs = 24 * 3_600_000

function register({ db }: WriteContext, { node, now }: Parameters<NodeStore['register']>[0]): void {
  const atMs = db.dialect.storeMs(db, now)
  db.query('DELETE FROM node WHERE seen_at_ms < ?').run(atMs - dayMs)
  db.query(
    `INSERT INTO node (name, version, role, started_at_ms, seen_at_ms) VALUES (?1, ?2, ?3, ?4, ?5)
     ON CONFLICT (name) DO UPDATE SET version = excluded.version, role = excluded.role,
       started_at_ms = excluded.started_at_ms, seen_at_ms = excluded.seen_at_ms`,
  ).run(node.name, node.version, node.role, atMs, atMs)
}

function heartbeat(
  { db }: WriteContext,
  { name, now }: Parameters<NodeStore['heartbeat']>[0],
): { storeMs: number } {
  const storeMs = db.dialect.storeMs(db, now)
  const { changes } = db.query('UPDATE node SET seen_at_ms = ? WHERE name = ?').run(storeMs, name)
  if (changes === 0) throw new StoreError('not_found', `the node ${name} is not registered`)
  return { storeMs }
}

function listNodes({ db }: ReadContext): Node[] {
  return db
    .query<Node, []>(
      `SELECT name, version, role, started_at_ms AS startedAtMs, seen_at_ms AS seenAtMs FROM node ORDER BY name`,
    )
    .all()
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
  const held = db.query('SELECT 1 FROM job_lease WHERE job = ? AND lease = ?').get(job, lease)
  if (held === null) throw new StoreError('conflict', `the lease of the job ${job} is lost`)
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
  const perOrg = placeOf(1, 0)
  // One statement for all organizations, because a store polls it. The arrivals of an engine that moves `last_seq` with
  // every append need no block.
  const rows = db
    .query<{ orgId: string; last: number; num: number; newest: number | null }, [number, number]>(
      `SELECT o.org_id AS orgId, o.num, o.last_seq AS last,
         (SELECT b.place + b.events - 1 FROM event_block b WHERE b.place >= o.num * CAST(?1 AS BIGINT)
            AND b.place < (o.num + 1) * CAST(?2 AS BIGINT) ORDER BY b.place DESC LIMIT 1) AS newest
       FROM event_org o`,
    )
    .all(perOrg, perOrg)
  for (const { orgId, num, last, newest } of rows)
    arrivals[orgId] = Math.max(last, newest === null ? 0 : newest - placeOf(num, 0))
  return { versions, arrivals }
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
