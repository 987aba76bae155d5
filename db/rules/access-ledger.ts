/**
 * What a group of batches changes in the rows of access logs: decides whether lines are new, and adds them up. Pure:
 * the engines pass the rows that they have read, and write the changes in the transaction of the events.
 */
import { StoreError } from '../contract/errors.ts'
import { eventTimeMs } from './event-record.ts'
import {
  requestKinds,
  type AccessLines,
  type AccessResult,
  type AccessSource,
  type RequestKind,
} from '../contract/access-logs.ts'
import type { EventBatch } from '../contract/store.ts'
import { dayMs, hourMs } from '../contract/units.ts'
import { countsRetentionDays } from './retention-days.ts'

export interface SourceKey {
  orgId: string
  siteId: string
  source: string
}

/** A row of `access_source`, without its checksum. */
export interface SourceRow extends SourceKey, AccessSource {
  expiresMs: number
}

export interface HourChange {
  orgId: string
  hour: number
  siteId: string
  kind: RequestKind
  requests: number
  bytes: number
}

export interface AccessChanges {
  sources: { row: SourceRow; was: number }[] // `was`: the position in the table, 0 without a row
  hours: HourChange[] // to add, in order of their key
}

/** The lines of a batch that are being stored. */
export interface OpenLines {
  /** The request of the event with this index was stored. Other events are ignored. */
  stored(index: number, atMs: number): void
  deduped(index: number): void
  rejected(index: number): void
  close(): AccessResult
}

export interface AccessLedger {
  /** Lines to store, or why there are none. Throws on counts that do not add up. */
  open(batch: EventBatch, access: AccessLines, receivedAtMs: number): OpenLines | AccessResult
  /** The changes of all closed batches; the ledger is empty afterwards. */
  take(): AccessChanges
}

export const accessHourMs = hourMs

/** As long as the hours, so that a log that is read again is known. */
const logExpiryMs = countsRetentionDays * dayMs
const drainExpiryMs = 7 * dayMs

/** The sums of expired rows. */
export const sumsOf = { drains: '(drains)', logs: '(older)' } as const

const limits = { source: 80, tail: 80, path: 1_024, format: 200, site: 200 }
/** So that no sum of a log, and no checksum of an hour, exceeds what a number holds exactly. */
const bytesOfRequestMax = 2 ** 40
const bytesOfSourceMax = 2 ** 46

const keyOf = (parts: (string | number)[]): string => JSON.stringify(parts)

export function accessLedger(find: (key: SourceKey) => SourceRow | null): AccessLedger {
  let sources = new Map<string, AccessChanges['sources'][number]>()
  let hours = new Map<string, HourChange>()

  function addHour(change: HourChange): void {
    const key = keyOf([change.orgId, change.hour, change.siteId, change.kind])
    const existingHour = hours.get(key)
    if (existingHour === undefined) hours.set(key, { ...change })
    else {
      existingHour.requests += change.requests
      existingHour.bytes += change.bytes
    }
  }

  function close(row: SourceRow, next: SourceRow, added: Iterable<HourChange>): void {
    const key = keyOf([row.orgId, row.siteId, row.source])
    sources.set(key, { row: next, was: sources.get(key)?.was ?? row.position })
    for (const change of added) addHour(change)
  }

  return {
    open({ orgId, events }, access, receivedAtMs) {
      requireSums(access, events.length)
      const { siteId, source } = access
      const key = { orgId, siteId, source }
      const row = sources.get(keyOf([orgId, siteId, source]))?.row ?? find(key) ?? newRow(key)
      const { position, tail } = row
      const unchanged = { position, tail, stored: 0, deduped: 0, rejected: 0 }
      if (access.to <= position) return { ...unchanged, state: 'known', deduped: requestsOf(access) }
      if (access.from !== position) return { ...unchanged, state: 'behind' }
      return openLines(row, access, receivedAtMs, close)
    },
    take() {
      const byKey = <T extends object>(changesByKey: Map<string, T>): T[] =>
        [...changesByKey].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, change]) => change)
      const changes = { sources: byKey(sources), hours: byKey(hours) }
      sources = new Map()
      hours = new Map()
      return changes
    },
  }
}

type Close = (row: SourceRow, next: SourceRow, added: Iterable<HourChange>) => void

function openLines(row: SourceRow, access: AccessLines, receivedAtMs: number, close: Close): OpenLines {
  const { orgId, siteId } = row
  const { requests } = access
  const added = { stored: 0, deduped: 0, rejected: 0 }
  let bytesAdded = 0
  const changes = new Map<number, HourChange>() // by hour and kind
  const isFull = row.bytes + bytesOf(access) > bytesOfSourceMax
  const add = (kind: RequestKind, atMs: number, count: number, bytes: number): void => {
    const hour = Math.floor(eventTimeMs(atMs, receivedAtMs) / accessHourMs)
    const key = hour * requestKinds.length + requestKinds.indexOf(kind)
    const change = changes.get(key) ?? { orgId, hour, siteId, kind, requests: 0, bytes: 0 }
    changes.set(key, change)
    change.requests += count
    if (isFull) return
    change.bytes += bytes
    bytesAdded += bytes
  }
  return {
    stored(index, atMs) {
      const bytes = requests[index] ?? null
      if (bytes === null) return
      added.stored++
      add('agent', atMs, 1, Math.min(bytes, bytesOfRequestMax))
    },
    deduped(index) {
      if (requests[index] !== null) added.deduped++
    },
    rejected(index) {
      if (requests[index] !== null) added.rejected++
    },
    close() {
      for (const { kind, hourMs, requests: count, bytes } of access.counts) add(kind, hourMs, count, bytes)
      const next = afterLines(row, access, receivedAtMs)
      next.stored += added.stored
      next.deduped += added.deduped
      next.bad += access.sums.bad + added.rejected
      next.bytes += bytesAdded
      close(row, next, changes.values())
      return { state: 'stored', position: next.position, tail: next.tail, ...added }
    },
  }
}

function newRow(key: SourceKey): SourceRow {
  return {
    ...key,
    path: '',
    format: '',
    position: 0,
    tail: '',
    newestMs: null,
    updatedMs: 0,
    isDrain: false,
    lines: 0,
    stored: 0,
    deduped: 0,
    people: 0,
    assets: 0,
    bots: 0,
    notes: 0,
    bad: 0,
    bytes: 0,
    expiresMs: 0,
  }
}

/** The row with everything that does not depend on which events are new. */
function afterLines(row: SourceRow, access: AccessLines, receivedAtMs: number): SourceRow {
  const { sums, isDrain = false } = access
  const assets = sumOf(access, 'asset')
  const bots = sumOf(access, 'bot')
  const times = [row.newestMs, access.newestMs].filter((ms) => ms !== null)
  return {
    ...row,
    path: storable(access.path).slice(0, limits.path),
    format: storable(access.format).slice(0, limits.format),
    position: access.to,
    tail: access.tail,
    lines: row.lines + sums.lines,
    people: row.people + sums.people,
    assets: row.assets + assets,
    bots: row.bots + bots,
    notes: row.notes + sums.excluded - assets - bots,
    newestMs: times.length === 0 ? null : Math.max(...times),
    updatedMs: receivedAtMs,
    isDrain,
    expiresMs: receivedAtMs + (isDrain ? drainExpiryMs : logExpiryMs),
  }
}

function sumOf({ counts }: AccessLines, kind: RequestKind): number {
  return counts.reduce((sum, hourCount) => sum + (hourCount.kind === kind ? hourCount.requests : 0), 0)
}

function requestsOf({ requests }: AccessLines): number {
  return requests.reduce<number>((sum, bytes) => sum + (bytes === null ? 0 : 1), 0)
}

function bytesOf({ counts, requests }: AccessLines): number {
  const otherBytes = counts.reduce((sum, { bytes }) => sum + bytes, 0)
  return requests.reduce<number>((sum, bytes) => sum + Math.min(bytes ?? 0, bytesOfRequestMax), otherBytes)
}

/** A caller that counts wrong must not store anything. */
function requireSums(access: AccessLines, events: number): void {
  const { siteId, source, from, to, tail, requests, counts, sums } = access
  const agents = requestsOf(access)
  const otherRequests = sums.excluded - sumOf(access, 'asset') - sumOf(access, 'bot')
  const numbers = [from, ...Object.values(sums), otherRequests, ...requests.map((bytes) => bytes ?? 0)]
  for (const { hourMs, requests: hourRequests, bytes } of counts) numbers.push(hourMs, hourRequests, bytes)
  const isNamed =
    isText(siteId, limits.site) && isText(source, limits.source) && !source.startsWith('(') && tail !== ''
  const isRight =
    requests.length === events &&
    to > from &&
    sums.people === sumOf(access, 'person') &&
    sums.lines === agents + sums.people + sums.excluded + sums.bad &&
    numbers.every((number) => Number.isSafeInteger(number) && number >= 0)
  if (!isNamed || !isRight || !isText(tail, limits.tail))
    throw new StoreError('internal', 'the lines of an access log do not add up')
}

function isText(text: string, charsMax: number): boolean {
  return text !== '' && text.length <= charsMax && storable(text) === text
}

function storable(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\u2400')
}

/** Of all columns of a row, so that one that was changed by hand is found. */
export function sourceChecksum(row: SourceRow): number {
  const { orgId, siteId, source, path, format, position, tail, lines, stored, deduped, people } = row
  const { assets, bots, notes, bad, bytes, newestMs, updatedMs, isDrain, expiresMs } = row
  return Bun.hash.crc32(
    JSON.stringify([
      orgId,
      siteId,
      source,
      path,
      format,
      position,
      tail,
      lines,
      stored,
      deduped,
      people,
      assets,
      bots,
      notes,
      bad,
      bytes,
      newestMs,
      updatedMs,
      isDrain,
      expiresMs,
    ]),
  )
}

/** As in SQL, where hours are added up. */
export function hourChecksum({
  hour,
  requests,
  bytes,
}: Pick<HourChange, 'hour' | 'requests' | 'bytes'>): number {
  return 31 * requests + 7 * bytes + hour
}
