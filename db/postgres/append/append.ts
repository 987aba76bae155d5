/** Appends groups of batches: one statement per group, whose blocks are built again when another node was first. */
import { StoreError } from '../../contract/errors.ts'
import { failureOf, type AppendOutcome } from '../../sql/threads/protocol.ts'
import { seedOf } from '../../sql/events/dedupe/fingerprints.ts'
import { translate } from '../connection/dialect.ts'
import { kindOf, readOnlyCode } from '../connection/failure.ts'
import { eachIn, idHashes, type IdHash } from '../events/id-hash.ts'
import { writerSchema } from '../migrations/migrations.ts'
import { sourceColumns, sourceOf, type StoredSource } from '../../sql/access/access-logs.ts'
import type { SourceKey } from '../../rules/access-ledger.ts'
import type { AppendClient, Parameter } from './client.ts'
import { appendOrgs, type AppendOrg } from './org.ts'
import {
  accessTypes,
  networkTypes,
  parameterTypes,
  scopeTypes,
  stager,
  type Staged,
  type Stored,
} from './stage.ts'
import type { EventBatch } from '../../contract/store.ts'

export interface Appends {
  /** The outcome of each batch. A batch that fails does not fail those of other organizations. */
  append(batches: readonly EventBatch[]): Promise<AppendOutcome[]>
  /** Whether the last appends found arrivals of other nodes. */
  othersAppend(): boolean
}

/** Of the append thread for each group. */
export interface AppendAnswer {
  outcomes: AppendOutcome[]
  /** As `Threads.othersAppend`. */
  othersAppend: boolean
}

/** Of that many appends at least two must find others: two groups of this node may also change their order. */
const recentAppends = 8

/** Organizations per statement; PostgreSQL allows 65,535 parameters. */
const orgsPerStatement = 16

/** Each try fails only because another node was first, and so made progress. */
const triesMax = 50

/**
 * After a resend the ids of an organization are looked up first for this long, because a known id fails the statement,
 * and the server logs each failure.
 */
const resentMs = 60_000

interface Work {
  orgId: string
  batches: EventBatch[]
  at: number[] // of each batch in its group
}

export async function openAppends(client: AppendClient): Promise<Appends> {
  const [row] = await client.rows<{ seed: Uint8Array }>(`SELECT seed FROM ${client.schema}.event_seed`, [])
  const seed = seedOf(row?.seed)
  const hash = idHashes(seed)
  const orgs = appendOrgs(client, seed.values)
  const stage = stager(hash)
  const { isResent, noteResent, storedHashes } = resends(client, hash)
  const recent: boolean[] = []

  /** One statement: all organizations or none. */
  async function commit(works: readonly Work[]): Promise<Staged[]> {
    const orgIds = works.map(({ orgId }) => orgId)
    const batchesOf = new Map(works.map(({ orgId, batches }) => [orgId, batches]))
    for (let tries = 1; ; tries++) {
      const stored = new Map<string, ReadonlySet<string>>()
      for (const [orgId, { num }] of await orgs.of(orgIds))
        if (isResent(orgId)) stored.set(orgId, await storedHashes(num, batchesOf.get(orgId)!))
      const source = await storedSources(client, works)
      const loaded = await orgs.of(orgIds)
      const staged = Array.from(loaded, ([orgId, org]) => {
        const ids = stored.get(orgId) ?? new Set<string>()
        return { orgId, ...stage(org, batchesOf.get(orgId)!, { ids, source }) }
      })
      const unsure = staged.filter((entry) => hasRejected(entry) && !stored.has(entry.orgId))
      const { failure, foundOthers } = unsure.length > 0 ? unsureSent : await send(client, staged)
      noteOthers(foundOthers)
      if (failure === null) return orgIds.map((orgId) => staged.find((entry) => entry.orgId === orgId)!)
      const conflict = tries < triesMax ? conflictOf(failure, tries) : null
      // Numbers and terms in memory assumed that the statement succeeds.
      await orgs.refresh(orgIds, conflict !== 'ids')
      if (conflict === null) throw failure
      if (conflict === 'ids') noteResent(orgIds)
    }
  }

  function noteOthers(hasOthers: boolean): void {
    recent.push(hasOthers)
    if (recent.length > recentAppends) recent.shift()
  }

  async function outcomesOf(works: readonly Work[], outcomes: AppendOutcome[]): Promise<void> {
    const staged = await commit(works).catch((error: unknown) => failureOf(appendError(error)))
    works.forEach(({ at: places }, index) => {
      places.forEach((place, batch) => {
        outcomes[place] = 'kind' in staged ? staged : staged[index]!.outcomes[batch]!
      })
    })
  }

  return {
    async append(batches) {
      const byOrg = new Map<string, Work>()
      batches.forEach((batch, place) => {
        const work = byOrg.get(batch.orgId) ?? { orgId: batch.orgId, batches: [], at: [] }
        work.batches.push(batch)
        work.at.push(place)
        byOrg.set(batch.orgId, work)
      })
      const outcomes = new Array<AppendOutcome>(batches.length)
      const works = [...byOrg.values()]
      for (let from = 0; from < works.length; from += orgsPerStatement)
        await outcomesOf(works.slice(from, from + orgsPerStatement), outcomes)
      return outcomes
    },
    othersAppend: () => recent.filter(Boolean).length > 1,
  }
}

/** Which ids are stored, and which organizations resend. */
function resends({ schema, rows }: AppendClient, hash: IdHash) {
  const resentAtMs = new Map<string, number>()
  return {
    isResent(orgId: string): boolean {
      if (performance.now() - (resentAtMs.get(orgId) ?? -Infinity) < resentMs) return true
      resentAtMs.delete(orgId)
      return false
    },
    noteResent(orgIds: readonly string[]): void {
      for (const orgId of orgIds) resentAtMs.set(orgId, performance.now())
    },
    /** The hashes that `event_id` has of all the ids. */
    async storedHashes(num: number, batches: readonly EventBatch[]): Promise<ReadonlySet<string>> {
      const hashes = batches.flatMap(({ events }) => events.map(({ id }) => hash(num, JSON.stringify(id))))
      const hashRows = await rows<{ h: string }>(
        `SELECT found.h::text AS h FROM ${eachIn('$1', `${schema}.event_id`)}`,
        [`{${hashes.join()}}`],
      )
      return new Set(hashRows.map(({ h }) => h.replaceAll('-', '')))
    },
  }
}

/** Reads the rows of the access logs of a group before it is staged; `append_access` checks that they are current. */
async function storedSources(
  { schema, rows }: AppendClient,
  works: readonly Work[],
): Promise<Stored['source']> {
  const keys = works.flatMap(({ orgId, batches }) =>
    batches.flatMap(({ access }) =>
      access === undefined ? [] : [{ org_id: orgId, site_id: access.siteId, source: access.source }],
    ),
  )
  if (keys.length === 0) return () => null
  const sourceRows = await rows<StoredSource>(
    `SELECT ${translate(sourceColumns).sql} FROM ${schema}.access_source
     WHERE (org_id, site_id, source) IN (SELECT org_id, site_id, source
       FROM jsonb_to_recordset($1::jsonb) AS k (org_id text, site_id text, source text))`,
    [JSON.stringify(keys)],
  )
  const nameOf = ({ orgId, siteId, source }: SourceKey) => JSON.stringify([orgId, siteId, source])
  const sourcesByName = new Map(sourceRows.map((row) => [nameOf(row), sourceOf(row)]))
  return (key) => sourcesByName.get(nameOf(key)) ?? null
}

interface Sent {
  failure: unknown // null: the statement committed
  foundOthers: boolean // arrivals of other nodes that this one did not know of
}

async function send({ schema, rows }: AppendClient, staged: readonly Staged[]): Promise<Sent> {
  const calls = staged.filter(({ parameters }) => parameters !== null)
  const logs = staged.flatMap(({ access }) => (access === null ? [] : [access]))
  // Counts of scopes come with those of their request, so they need no call of their own here.
  if (calls.length + logs.length === 0) return { failure: null, foundOthers: false }
  const parameters: Parameter[] = []
  const call = (name: string, types: readonly string[], values: Parameter[]): string => {
    const list = types.map((type, index) => `$${parameters.length + index + 1}::${type}`)
    parameters.push(...values)
    return `${schema}.${name}(${[writerSchema, ...list].join(', ')})`
  }
  /** Networks need the arrival that `append_events` returns; this returns it too. */
  const withNetworks = (events: string, values: Parameter[] | null): string => {
    if (values === null) return events
    const list = networkTypes.map((type, index) => `$${parameters.length + index + 1}::${type}`)
    parameters.push(...values)
    return `${schema}.append_networks(${[writerSchema, events, ...list].join(', ')})`
  }
  // One organization after the other, as in `addIngestCounts`, so that the two cannot wait for each other.
  const texts = calls.flatMap((entry, index) => {
    const events = call('append_events', parameterTypes, entry.parameters!)
    const append = `${withNetworks(events, entry.networks)} AS last_${index}`
    return entry.scopes === null ? [append] : [append, call('append_scopes', scopeTypes, entry.scopes)]
  })
  for (const values of logs) texts.push(call('append_access', accessTypes, values))
  try {
    const [row] = await rows<Record<string, number>>(`SELECT ${texts.join(', ')}`, parameters)
    const lastOf = (index: number) => row![`last_${index}`]!
    calls.forEach(({ org, terms }, index) => settle(org, lastOf(index), terms))
    return { failure: null, foundOthers: calls.some(({ lastSeq }, index) => lastOf(index) > lastSeq) }
  } catch (failure) {
    return { failure, foundOthers: false }
  }
}

function settle(org: AppendOrg, lastSeq: number, terms: Staged['terms']): void {
  org.lastSeq = Math.max(org.lastSeq, lastSeq)
  for (const term of terms) org.pending.delete(term)
}

/** A resend is deduped before a limit rejects it, so ids are looked up before an event is rejected. */
function hasRejected({ outcomes }: Staged): boolean {
  return outcomes.some((outcome) => !('kind' in outcome) && outcome.rejected.length > 0)
}

const unsureSent: Sent = { failure: { code: '23505', table_name: 'event_id' }, foundOthers: false }

type Conflict = 'ids' | 'terms' | 'segment' | 'logs' | 'session'

/** What another node changed first; null for a failure. */
function conflictOf(error: unknown, tries: number): Conflict | null {
  const { code = '', table_name: table = '' } = error as { code?: string; table_name?: string }
  if (code === '23505' && table.startsWith('event_id')) return 'ids'
  if (code === 'SG001' || code === 'SG002') return 'terms'
  if (code === 'SG005') return 'logs'
  // A session has the default of the time when it began. The next one may write again.
  if (code === readOnlyCode && tries === 1) return 'session'
  return code === 'SG003' ? 'segment' : null
}

/** After a lost connection the outcome is unknown. A sender that sends again is answered by dedupe. */
function appendError(error: unknown): StoreError {
  if (error instanceof StoreError) return error
  const { code = '', message = String(error) } = error as { code?: string; message?: string }
  return new StoreError(kindOf(code), `append: ${message}`, { cause: error })
}
