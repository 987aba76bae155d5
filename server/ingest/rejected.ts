/** Rejected events: their issues, the errors of requests, restricted sites, and samples for the ingest health page. */
import { AppError, type Issue } from '../errors.ts'
import { limits } from '../limits.ts'
import { withoutObserved } from './observed-text.ts'
import { cutBytes, cutChars, isStorable } from '../text/text.ts'
import type {
  ApiKey,
  EventRecord,
  GuardRail,
  RailedEvent,
  RejectedSample,
  SiteStore,
  Store,
} from '../../db/contract/store.ts'
import type { Log } from '../log.ts'

export interface Accepted {
  sent: number // events in the request, stored and rejected
  records: EventRecord[]
  positions: number[] // index of each record in the request
  rejected: Rejected[] // in the order sent
  /** What the sender saw of the requests, if it says so. Valid until the events are judged. */
  observations?: Observations
  /** The first valid event, or the first of all when none is valid, if it was parsed. */
  sample?: unknown
}

/** `observed` as it was sent, and the events beside it. */
export interface Observations {
  entries: unknown // by event id
  isTooLarge?: boolean // then it was not parsed
  events: readonly unknown[] // as parsed, in the order sent
}

/** An event that is not stored. Paths in its issues are relative to the event; '' is the event itself. */
export interface Rejected {
  index: number // in the request, from 0
  issues: Issue[] // 1 to `limits.issuesPerEventMax`
  excerpt: string // of the event as sent, at most `limits.rejectedExcerptBytesMax`
}

/** Adds the event's index to its issues, and its id when that is a valid string. */
export function rejected(index: number, event: unknown, issues: Issue[], sentText: string): Rejected {
  const id = usableId(event)
  return {
    index,
    issues: issues
      .slice(0, limits.issuesPerEventMax)
      .map((issue) => (id === null ? { ...issue, index } : { ...issue, index, id })),
    excerpt: cutBytes(sentText, limits.rejectedExcerptBytesMax),
  }
}

export type OverLimit = 'too_deep' | 'too_large'

export function overLimitIssue(code: OverLimit): Issue {
  const message =
    code === 'too_deep'
      ? `must not be nested deeper than ${limits.eventDepthMax} levels`
      : `must have at most ${limits.eventBytesMax} bytes`
  return { path: '', code, message }
}

const railMax: Record<GuardRail, number> = {
  type: limits.typesPerOrgMax,
  outcome: limits.outcomesPerOrgMax,
  siteId: limits.sitesPerOrgMax,
}

/** An event that the store rejected because the organization has too many distinct values. */
export function guardRailRejected(index: number, railed: RailedEvent): Rejected {
  const { member, json } = railed
  const message = `an organization can have at most ${railMax[member]} distinct values`
  return rejected(index, railed, [{ path: member, code: 'too_many', message }], json)
}

/** The error when all events were rejected: 403 when every one names a site the key is not allowed for, else 400. */
export function allRejected(events: readonly Rejected[]): AppError {
  const issues = events.flatMap((event) => event.issues)
  if (issues.every((issue) => issue.code === 'wrong_site')) {
    const reason = 'wrong_site'
    return new AppError('forbidden', 'This ingest key is limited to other sites.', { reason, issues })
  }
  return new AppError('invalid_body', 'All events in this request were rejected.', { issues })
}

/** A hostile id is truncated instead of echoed at length. */
function usableId(event: unknown): string | null {
  if (typeof event !== 'object' || event === null || Array.isArray(event)) return null
  const id = (event as { id?: unknown }).id
  return typeof id === 'string' && id !== '' && isStorable(id) ? cutChars(id, limits.idCharsMax) : null
}

type Sender = Pick<ApiKey, 'id' | 'orgId'>

/** One sample per rejected event, with its first issue (contract §4: the newest are stored, truncated). */
export function eventSamples(key: Sender, atMs: number, rejected: readonly Rejected[]): RejectedSample[] {
  const samples: RejectedSample[] = []
  for (const { issues, excerpt } of rejected) {
    const issue = issues[0]
    if (issue === undefined) continue
    const { code, message, path } = issue
    samples.push({ orgId: key.orgId, keyId: key.id, atMs, code, message, path, excerpt: excerptOf(excerpt) })
  }
  return samples
}

/** The sample of a request that was rejected as a whole; `text` is '' when it was not decoded. */
export function requestSample(key: Sender, atMs: number, error: AppError, text: string): RejectedSample {
  const { code, message } = error
  const path = error.details.issues?.[0]?.path ?? ''
  return { orgId: key.orgId, keyId: key.id, atMs, code, message, path, excerpt: excerptOf(text) }
}

/**
 * At most 4 KiB of whole characters, without what the sender observed. NUL is replaced because it ends the text in many
 * tools.
 */
function excerptOf(text: string): string {
  const head = withoutObserved(text.slice(0, limits.rejectedExcerptBytesMax + 1))
  const start = head.replaceAll('\0', '\u2400')
  return cutBytes(start, limits.rejectedExcerptBytesMax).toWellFormed()
}

/** Stores samples for the ingest health page. Collects them while a write runs, so a flood costs few writes. */
export interface Rejections {
  add(samples: RejectedSample[]): void
  /** Resolves when all samples so far are written or dropped. */
  settled(): Promise<void>
}

/** The store keeps the newest 1,000 samples per organization, so more need not wait. */
const waitingMax = 1_000

export function makeRejections(store: Pick<Store, 'rejected'>, log: Log): Rejections {
  let waiting: RejectedSample[] = []
  let writing: Promise<void> | null = null

  async function writeAll(): Promise<void> {
    while (waiting.length > 0) {
      const samples = waiting
      waiting = []
      // Samples help to debug a sender; losing one to a full disk must not fail its request.
      await store.rejected.add(samples).catch((error: unknown) => {
        log.warn('rejected_samples_not_kept', { count: samples.length, message: String(error) })
      })
    }
    writing = null
  }

  return {
    add(samples) {
      waiting = [...waiting, ...samples].slice(-waitingMax)
      writing ??= writeAll()
    },
    settled: async () => void (await writing),
  }
}

export function restrictedIssue(): Issue {
  const message = 'is a restricted site; only ingest keys limited to it can write to it'
  return { path: 'siteId', code: 'wrong_site', message }
}

/** A key limited to sites lists the ones it can write to, so only an unlimited key can hit a restricted site. */
export async function isRestricted(
  store: { sites: Pick<SiteStore, 'restricted'> },
  key: ApiKey,
  siteId: string,
): Promise<boolean> {
  return key.siteIds.length === 0 && (await store.sites.restricted(key.orgId)).has(siteId)
}

/** Rejects the events of an unlimited key for the restricted sites of its organization. */
export function rejectRestricted(sites: ReadonlySet<string>, key: ApiKey, accepted: Accepted): Accepted {
  if (key.siteIds.length > 0 || sites.size === 0) return accepted
  if (!accepted.records.some(({ siteId }) => sites.has(siteId))) return accepted
  const allowedEvents: Accepted = {
    ...accepted,
    records: [],
    positions: [],
    rejected: [...accepted.rejected],
  }
  accepted.records.forEach((record, index) => {
    const position = accepted.positions[index] ?? 0
    if (sites.has(record.siteId)) {
      allowedEvents.rejected.push(rejected(position, record, [restrictedIssue()], record.json))
    } else {
      allowedEvents.records.push(record)
      allowedEvents.positions.push(position)
    }
  })
  allowedEvents.rejected.sort((a, b) => a.index - b.index)
  return allowedEvents
}
