/** Turns the batches of one organization into the parameters of `append_events`. */
import { blockChecksum, extra, packBlock, rangeOf, type StagedBlock } from '../../sql/events/blocks/block.ts'
import { appender, type KnownIds } from '../../sql/events/write/append.ts'
import { failureOf, type AppendOutcome } from '../../sql/threads/protocol.ts'
import { requestCounts } from '../../sql/ingest-counts/ingest-counts.ts'
import { accessLedger, sourceChecksum, type AccessChanges } from '../../rules/access-ledger.ts'
import { countHourMs, scopesPerHourMax, type ScopeHour } from '../../contract/ingest-counts.ts'
import { StoreError } from '../../contract/errors.ts'
import type { EventBatch } from '../../contract/store.ts'
import type { Staging, Term } from '../../sql/events/write/org-state.ts'
import type { Parameter } from './client.ts'
import type { AppendOrg } from './org.ts'
import type { IdHash } from '../events/id-hash.ts'

export interface Staged {
  org: AppendOrg
  /** The last arrival, when no other node was first. */
  lastSeq: number
  /** Of each batch, in order, when the statement commits. */
  outcomes: AppendOutcome[]
  /** Terms that the statement stores. */
  terms: Term[]
  /** Null when nothing is to be stored: no event, no count, no term. */
  parameters: Parameter[] | null
  /** Of `append_access`; null when no line of an access log is to be stored. */
  access: Parameter[] | null
  /** Of `append_scopes`; null without counts of OpenTelemetry scopes. */
  scopes: Parameter[] | null
  /** Of `append_networks`; null without contradicted requests. */
  networks: Parameter[] | null
}

/** Must match the parameters of `append_events` in 0004_append.sql. */
export const parameterTypes = [
  'bigint',
  'bigint',
  'bigint',
  'uuid[]',
  'int[]',
  'bigint[]',
  'bigint[]',
  'bigint[]',
  'bigint[]',
  'int[]',
  'int[]',
  'int[]',
  'int[]',
  'bytea',
  'int[]',
  'text[]',
  'int[]',
  'text',
  'bigint',
]

/** Must match the parameters of `append_access` in 0008_access_logs.sql. */
export const accessTypes = ['bigint', 'text', 'text']

/** Must match the parameters of `append_scopes` in 0011_ingest_scope.sql. */
export const scopeTypes = ['bigint', 'text', 'bigint', 'bigint']

/** Must match the parameters of `append_networks` in 0021_provenance.sql, after the arrival. */
export const networkTypes = ['bigint', 'bigint[]', 'bigint[]', 'text']

/** What is stored already: the hashes of ids, and rows of access logs. */
export interface Stored {
  ids: ReadonlySet<string>
  source: Parameters<typeof accessLedger>[0]
}

type Stage = (org: AppendOrg, batches: readonly EventBatch[], stored: Stored) => Staged

export function stager(hash: IdHash): Stage {
  let stored: ReadonlySet<string> = new Set()
  let staged = new Set<string>()
  let last = ''
  let findSource: Stored['source'] = () => null
  const knownIds: KnownIds = {
    prepare() {},
    has({ num }, id) {
      last = hash(num, id)
      return staged.has(last) || stored.has(last)
    },
    add: () => void staged.add(last),
  }
  const ledger = accessLedger((key) => findSource(key))
  const appends = appender(knownIds, ledger)

  return (org, batches, { ids, source }) => {
    stored = ids
    findSource = source
    staged = new Set()
    const { num, lastSeq, receivedMs } = org
    const state: Staging = { num, lastSeq, receivedMs, terms: org.terms, staged: [], networks: [] }
    const outcomes = batches.map((batch): AppendOutcome => {
      try {
        return appends.append(state, batch)
      } catch (error) {
        if (error instanceof StoreError) return failureOf(error)
        throw error
      }
    })
    org.lastSeq = state.lastSeq
    org.receivedMs = state.receivedMs
    const terms = [...org.pending]
    const { counts, scopes: ofScopes, keptSinceMs } = requestCounts(batches, outcomes)
    const { lastSeq: last } = state
    const access = accessParameters(num, ledger.take())
    const scopes = scopeParameters(num, ofScopes, keptSinceMs)
    const networks = networkParameters(num, state)
    if (staged.size + terms.length + counts.length === 0)
      return { org, lastSeq: last, outcomes, terms, parameters: null, access, scopes, networks }
    const rows = counts.map((count) => ({
      hour: Math.floor(count.hourStartMs / countHourMs),
      key_id: count.keyId,
      requests: count.requests,
      refused: count.refused,
      accepted: count.accepted,
      deduped: count.deduped,
      rejected: count.rejected,
      ahead_max_ms: count.aheadMaxMs,
      behind_min_ms: count.behindMinMs,
    }))
    const parameters = [
      org.num,
      org.termDrops,
      org.receivedMs,
      `{${[...staged].join()}}`,
      ...blockParameters(state.staged),
      list(terms, ({ member }) => member),
      textList(terms),
      list(terms, ({ code }) => code),
      rows.length === 0 ? null : JSON.stringify(rows),
      Math.floor(keptSinceMs / countHourMs),
    ]
    for (const { content } of state.staged) appends.recycle(content)
    return { org, lastSeq: last, outcomes, terms, parameters, access, scopes, networks }
  }
}

function scopeParameters(num: number, scopes: readonly ScopeHour[], keptSinceMs: number): Parameter[] | null {
  if (scopes.length === 0) return null
  const rows = scopes.map(({ hourStartMs, scope, mapped, modelCalls, leftOut, refused }) => {
    const hour = Math.floor(hourStartMs / countHourMs)
    return { hour, scope, mapped, model_calls: modelCalls, left_out: leftOut, refused }
  })
  return [num, JSON.stringify(rows), scopesPerHourMax, Math.floor(keptSinceMs / countHourMs)]
}

/** Another node may append first, so arrivals are counted back from the last one of the statement. */
function networkParameters(num: number, { networks, lastSeq }: Staging): Parameter[] | null {
  if (networks.length === 0) return null
  return [
    num,
    list(networks, ({ seq }) => lastSeq - seq),
    list(networks, ({ day }) => day),
    JSON.stringify(networks.map(({ network }) => network)),
  ]
}

function accessParameters(num: number, { sources, hours }: AccessChanges): Parameter[] | null {
  if (sources.length === 0) return null
  const rows = sources.map(({ row, was }) => ({
    site_id: row.siteId,
    source: row.source,
    path: row.path,
    format: row.format,
    was,
    position: row.position,
    tail: row.tail,
    lines: row.lines,
    stored: row.stored,
    deduped: row.deduped,
    people: row.people,
    assets: row.assets,
    bots: row.bots,
    notes: row.notes,
    bad: row.bad,
    bytes: row.bytes,
    newest_ms: row.newestMs,
    updated_ms: row.updatedMs,
    is_drain: row.isDrain ? 1 : 0,
    expires_ms: row.expiresMs,
    checksum: sourceChecksum(row),
  }))
  const changes = hours.map(({ hour, siteId, kind, requests, bytes }) => {
    return { hour, site_id: siteId, kind, requests, bytes }
  })
  return [num, JSON.stringify(rows), JSON.stringify(changes)]
}

function blockParameters(blocks: readonly StagedBlock[]): (string | Uint8Array)[] {
  const parts: Uint8Array[] = []
  let start = 1 // SQL counts bytes from 1
  const packed = blocks.map(({ content }) => {
    const block = packBlock(content)
    const { columns, ids, bodies } = block
    parts.push(columns, ids, bodies)
    const { low: receivedMin } = rangeOf(content, extra.received)
    const packedBlock = { ...block, start, receivedMin, checksum: blockChecksum(block) }
    start += columns.length + ids.length + bodies.length
    return packedBlock
  })
  return [
    list(packed, ({ events }) => events),
    list(packed, ({ minAt }) => minAt),
    list(packed, ({ maxAt }) => maxAt),
    list(packed, ({ receivedMin }) => receivedMin),
    list(packed, ({ checksum }) => checksum),
    list(packed, ({ start }) => start),
    list(packed, ({ columns }) => columns.length),
    list(packed, ({ ids }) => ids.length),
    list(packed, ({ bodies }) => bodies.length),
    Buffer.concat(parts),
  ]
}

function list<T>(rows: readonly T[], value: (row: T) => number): string {
  return `{${rows.map(value).join()}}`
}

function textList(terms: readonly Term[]): string {
  return `{${terms.map(({ text }) => `"${text.replace(/["\\]/g, '\\$&')}"`).join()}}`
}
