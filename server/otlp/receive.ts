/** Reads an OTLP request item by item, stores its events in batches, and counts what became of each item. */
import {
  eventSamples,
  guardRailRejected,
  overLimitIssue,
  rejected,
  rejectRestricted,
} from '../ingest/rejected.ts'
import { writeOrExplain, type AdmissionServices } from '../ingest/admission.ts'
import { batchCount, type IngestCounts, type RequestCount } from '../ingest/counts.ts'
import { validateEvent } from '../ingest/check-event.ts'
import { limits } from '../limits.ts'
import { cutChars } from '../text/text.ts'
import { otherScopes, scopesPerHourMax, type ScopeCount } from '../../db/contract/ingest-counts.ts'
import {
  jsonItems,
  jsonLists,
  readLog as jsonLog,
  readMetric as jsonMetric,
  readSpan as jsonSpan,
} from './json.ts'
import { protobufItems, readLog, readMetric, readSpan } from './protobuf.ts'
import { eventsOfLog, eventsOfSpan, namedAgent, type Fate, type MappingOptions } from './events.ts'
import { makeLineage } from './lineage.ts'
import { slices, type Work } from '../http/slices.ts'
import {
  isRefused,
  spanEventsMax,
  type Items,
  type LogRecord,
  type Origin,
  type Refused,
  type Span,
} from './model.ts'
import type { Accepted, Rejected, Rejections } from '../ingest/rejected.ts'
import type { ApiKey, EventRecord, Store } from '../../db/contract/store.ts'
import type { Clock } from '../clock.ts'
import type { ClockGuard } from '../system/clock-guard.ts'
import type { SharedNode } from '../system/shared-node.ts'
import type { Issue } from '../errors.ts'
import type { OtlpEncoding } from '../http/otlp-answer.ts'

export interface ReceiveServices extends Omit<AdmissionServices, 'parseQueue'> {
  store: Store
  clock: Clock
  clockGuard: ClockGuard
  node: SharedNode | null
  rejections: Rejections
  otlp: MappingOptions
  ingestCounts: IngestCounts
}

/** What became of the items of a request. */
interface Received {
  items: number
  refused: number
  reason: string // why the first refused one was
  scopes: ScopeCounts
  corrections: ScopeCounts // of counts that were stored with the events, because the store refused some of these
}

type ScopeCounts = Map<string, ScopeCount>
type Counted = Exclude<keyof ScopeCount, 'scope'>

export interface OtlpRequest {
  body: Uint8Array
  encoding: OtlpEncoding
  key: ApiKey
  count: RequestCount
}

/** The items of a request, and what makes events of one. All items are noted before the first is mapped. */
interface Mapping<Item> {
  items: () => Items<Item>
  note: (item: Item) => void
  map: (item: Item, nowMs: number) => Fate
}

export function spanMapping({ body, encoding }: OtlpRequest, options: MappingOptions): Mapping<Span> {
  const lineage = makeLineage(namedAgent)
  return {
    items: () =>
      encoding === 'json' ? jsonItems(body, jsonLists.traces, jsonSpan) : protobufItems(body, readSpan),
    note: lineage.add,
    map: (span, nowMs) => eventsOfSpan(span, options, nowMs, lineage),
  }
}

export function logMapping({ body, encoding }: OtlpRequest, options: MappingOptions): Mapping<LogRecord> {
  return {
    items: () =>
      encoding === 'json' ? jsonItems(body, jsonLists.logs, jsonLog) : protobufItems(body, readLog),
    note: () => undefined,
    map: (record, nowMs) => eventsOfLog(record, options, nowMs),
  }
}

/** The number of data points of a request; none of them is stored. A metric beyond a limit counts as one. */
export async function countDataPoints({
  body,
  encoding,
  key,
}: Pick<OtlpRequest, 'body' | 'encoding' | 'key'>): Promise<number> {
  const items =
    encoding === 'json' ? jsonItems(body, jsonLists.metrics, jsonMetric) : protobufItems(body, readMetric)
  const work = slices.begin(key.orgId)
  let points = 0
  for (const counted of items) {
    if (isRefused(counted)) points++
    else if (counted !== null) points += counted
    const pause = work.pause()
    if (pause !== undefined) await pause
  }
  return points
}

const batchBytesMax = 4 * 1024 * 1024
const samplesMax = 50 // of refused items of one request, for the ingest health page
/** Items of a larger body are decoded twice, because in memory they take several times its bytes. */
const heldBytesMax = 1024 * 1024

/** Events to store in one transaction; all events of an item are in the same batch. */
interface Batch extends Accepted {
  bytes: number // about
  scopes: { index: number; scope: string }[] // of each item
}

/**
 * Stores the events of a request, and resolves when they are on disk. The body is read to its end before the first
 * event is stored: a malformed one stores nothing, and a span may come before the ancestor that names its agent.
 */
export async function receive<Item extends { origin: Origin }>(
  services: ReceiveServices,
  request: OtlpRequest,
  mapping: Mapping<Item>,
): Promise<Received> {
  const work = slices.begin(request.key.orgId)
  const bufferedItems = await readAhead(mapping, request.body.length <= heldBytesMax, work)
  const received: Received = { items: 0, refused: 0, reason: '', scopes: new Map(), corrections: new Map() }
  const storage = startStoring(services, request, received)
  const nowMs = services.clock.now()
  let batch = emptyBatch()
  let isOnly = true
  for (const item of bufferedItems ?? mapping.items()) {
    if (item !== null) {
      const index = received.items++
      const fate = isRefused(item) ? fateOfRefused(item) : mapping.map(item, nowMs)
      const scope = isRefused(item) ? '' : item.origin.scope
      if (fate.kind === 'model call') countItem(received.scopes, scope, 'modelCalls')
      else if (fate.kind === 'left out') countItem(received.scopes, scope, 'leftOut')
      else if (fate.kind === 'refused') storage.refuse(index, scope, fate)
      else {
        addTo(batch, index, fate, request.key.siteIds)
        batch.scopes.push({ index, scope })
      }
    }
    if (batch.scopes.length >= batchEventsMax || isFull(batch)) {
      isOnly = false
      await storage.add(batch)
      batch = emptyBatch()
    }
    const pause = work.pause()
    if (pause !== undefined) await pause
  }
  await storage.add(batch, isOnly)
  await storage.end()
  const { scopes, corrections } = received
  services.ingestCounts.scopes(request.key.orgId, (request.count.isWritten ? corrections : scopes).values())
  return received
}

/** Notes every item, and returns them all if they may wait in memory. Throws when the request is malformed. */
async function readAhead<Item>(
  { items, note }: Mapping<Item>,
  isHeld: boolean,
  work: Work,
): Promise<(Item | Refused)[] | null> {
  const bufferedItems: (Item | Refused)[] = []
  for (const item of items()) {
    if (item !== null) {
      if (!isRefused(item)) note(item)
      if (isHeld) bufferedItems.push(item)
    }
    const pause = work.pause()
    if (pause !== undefined) await pause
  }
  return isHeld ? bufferedItems : null
}

function fateOfRefused({ path, message }: Refused): Extract<Fate, { kind: 'refused' }> {
  return { kind: 'refused', path, message }
}

const scopeCharsMax = 200

/** Adds one item to the counts of a request. */
function countItem(counts: ScopeCounts, scope: string, kind: Counted, amount = 1): void {
  let scopeCount = counts.get(scope)
  if (scopeCount === undefined) {
    // A request has few scopes, unless its sender means harm.
    const name = counts.size < scopesPerHourMax ? cutChars(scope, scopeCharsMax) : otherScopes
    scopeCount = counts.get(name) ?? { scope: name, mapped: 0, modelCalls: 0, leftOut: 0, refused: 0 }
    counts.set(name, scopeCount)
  }
  scopeCount[kind] += amount
}

/** For an item that the store refused, after it was counted as mapped. */
function moveToRefused(counts: ScopeCounts, { scopes }: Batch, item: number): void {
  const scope = scopes.find(({ index }) => index === item)?.scope ?? ''
  countItem(counts, scope, 'mapped', -1)
  countItem(counts, scope, 'refused')
}

/** A batch is closed before an item could exceed what the store accepts; an item has few events. */
const batchEventsMax = limits.eventsPerRequestMax - spanEventsMax - 2

function emptyBatch(): Batch {
  return { sent: 0, records: [], positions: [], rejected: [], bytes: 0, scopes: [] }
}

function isFull({ records, bytes }: Batch): boolean {
  return records.length >= batchEventsMax || bytes >= batchBytesMax
}

function addTo(
  batch: Batch,
  index: number,
  fate: Extract<Fate, { kind: 'mapped' }>,
  siteIds: readonly string[],
): void {
  batch.sent++
  for (const event of fate.events) {
    const issues: Issue[] = []
    const record = validateEvent(event, siteIds, false, issues)
    const size = record === null ? 0 : bytesOf(record.json)
    if (size > limits.eventBytesMax) issues.push(overLimitIssue('too_large'))
    if (record === null || issues.length > 0) {
      batch.rejected.push(rejected(index, event, issues, JSON.stringify(event)))
      continue
    }
    batch.bytes += size
    batch.records.push(record)
    batch.positions.push(index)
  }
}

/** Looks at the characters only of a text that may be too large. */
function bytesOf(json: string): number {
  return json.length * 3 <= limits.eventBytesMax ? json.length : Buffer.byteLength(json)
}

/** Stores batches one after the other, each while the next one is decoded. */
function startStoring(services: ReceiveServices, { key, count }: OtlpRequest, received: Received) {
  let writing: Promise<void> = Promise.resolve()
  const samples: Rejected[] = []
  let withoutEvents = 0 // refused items, which no batch has

  async function write(batch: Batch, isOnly: boolean): Promise<void> {
    const allowedEvents = rejectRestricted(await services.store.sites.restricted(key.orgId), key, batch)
    const refused = new Set(allowedEvents.rejected.map(({ index }) => index))
    for (const { index, scope } of batch.scopes)
      countItem(received.scopes, scope, refused.has(index) ? 'refused' : 'mapped')
    if (allowedEvents.records.length > 0) {
      await append(allowedEvents, isOnly)
      for (const { index } of allowedEvents.rejected) {
        if (refused.has(index)) continue // as counted
        refused.add(index)
        moveToRefused(isOnly ? received.corrections : received.scopes, batch, index)
      }
    }
    noteRejected(allowedEvents.rejected, refused.size)
  }

  async function append({ records, positions, rejected }: Accepted, isOnly: boolean): Promise<void> {
    const newestMs = newestOf(records)
    count.newestMs = Math.max(count.newestMs ?? -Infinity, newestMs)
    const appended = services.store.events.append({
      orgId: key.orgId,
      keyId: key.id,
      door: 'otlp',
      receivedAtMs: Math.round(services.node?.clock.now() ?? services.clockGuard.arrival()),
      events: records,
      // Counts of several batches are written after them, so that they count one request.
      ...(isOnly
        ? { count: countOf(services, received, withoutEvents + refusedIn(rejected), newestMs) }
        : {}),
    })
    const result = await writeOrExplain(services, appended)
    if (isOnly) count.isWritten = true
    count.accepted += result.accepted
    count.deduped += result.deduped
    for (const railed of result.rejected) rejected.push(guardRailRejected(positions[railed.index]!, railed))
  }

  function noteRejected(rejected: readonly Rejected[], refused: number): void {
    noteReason(received, rejected[0]?.issues[0])
    received.refused += refused
    count.rejected += refused
    for (const sample of rejected) if (samples.length < samplesMax) samples.push(sample)
  }

  return {
    /** Counts an item that has no events. Only the first ones become samples: a request may have 250,000. */
    refuse(index: number, scope: string, { path, message }: Extract<Fate, { kind: 'refused' }>): void {
      withoutEvents++
      countItem(received.scopes, scope, 'refused')
      const issue = { path, code: 'wrong_format', message }
      noteReason(received, issue)
      if (samples.length < samplesMax) samples.push(rejected(index, null, [issue], ''))
    },
    async add(batch: Batch, isOnly = false): Promise<void> {
      await writing
      writing = write(batch, isOnly)
      writing.catch(() => undefined) // `end` and the next `add` report it
    },
    async end(): Promise<void> {
      await writing
      noteRejected([], withoutEvents)
      if (samples.length > 0) services.rejections.add(eventSamples(key, services.clock.now(), samples))
    },
  }
}

/** The first refusal of a request is the one that its sender is told. */
function noteReason(received: Received, issue: Issue | undefined): void {
  if (received.reason === '' && issue !== undefined) received.reason = `${issue.path} ${issue.message}`.trim()
}

/** The count of the whole request. A crash cannot separate it from the events. */
function countOf({ clock }: ReceiveServices, { scopes }: Received, refused: number, newestMs: number) {
  return batchCount(refused, newestMs, clock.now(), [...scopes.values()])
}

/** The number of items with a rejected event. */
function refusedIn(rejected: readonly Rejected[]): number {
  return new Set(rejected.map(({ index }) => index)).size
}

function newestOf(records: readonly EventRecord[]): number {
  return records.reduce((newest, { occurredAtMs }) => Math.max(newest, occurredAtMs), -Infinity)
}
