/** What came of the events of a request: the records to store, and what was rejected and why. */
import { AppError, type Issue } from '../errors.ts'
import { limits } from '../limits.ts'
import { cutBytes, cutChars, isKeepable } from '../text/text.ts'
import type {
  ApiKey,
  EventRecord,
  GuardRail,
  RailedEvent,
  RejectedSample,
  SiteStore,
  Store,
} from '../../db/contract/store.ts'
import type { OverLimit } from './outline.ts'
import type { Log } from '../log.ts'

export interface Accepted {
  sent: number // events in the request: records and rejected together
  records: EventRecord[]
  positions: number[] // of each record among what was sent
  rejected: Rejected[] // in the order sent
}

/** An event that is not stored. Paths in its issues start at the event; '' is the event itself. */
export interface Rejected {
  index: number // among the events of the request, from 0
  issues: Issue[] // 1 to `limits.issuesPerEventMax`
  excerpt: string // of the event as sent, at most `limits.rejectedExcerptBytesMax`
}

/** Completes the issues of one event with its index and, when that is a usable text, its id. */
export function rejected(index: number, event: unknown, issues: Issue[], sent: string): Rejected {
  const id = usableId(event)
  return {
    index,
    issues: issues
      .slice(0, limits.issuesPerEventMax)
      .map((issue) => (id === null ? { ...issue, index } : { ...issue, index, id })),
    excerpt: cutBytes(sent, limits.rejectedExcerptBytesMax),
  }
}

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

/** An event that the store refused for a guard rail of the organization, told like any other rejected event. */
export function guardRailRejected(index: number, railed: RailedEvent): Rejected {
  const { member, json } = railed
  const message = `an organization may have at most ${railMax[member]} different values`
  return rejected(index, railed, [{ path: member, code: 'too_many', message }], json)
}

/** Why nothing of a request is stored: 403 when every event names a site that the key is not for, else 400. */
export function allRejected(events: readonly Rejected[]): AppError {
  const issues = events.flatMap((event) => event.issues)
  if (issues.every((issue) => issue.code === 'wrong_site')) {
    const reason = 'wrong_site'
    return new AppError('forbidden', 'This ingest key is limited to other sites.', { reason, issues })
  }
  return new AppError('invalid_body', 'No event of this request can be taken.', { issues })
}

/** A hostile id is cut, not repeated at length. */
function usableId(event: unknown): string | null {
  if (typeof event !== 'object' || event === null || Array.isArray(event)) return null
  const id = (event as { id?: unknown }).id
  return typeof id === 'string' && id !== '' && isKeepable(id) ? cutChars(id, limits.idCharsMax) : null
}

/** Turns what ingest refused into samples for the ingest-health page (contract §4: the newest are kept, cut). */
type Sender = Pick<ApiKey, 'id' | 'orgId'>

/** One sample for each rejected event, told by the first thing that was wrong with it. */
export function eventSamples(key: Sender, atMs: number, rejected: readonly Rejected[]): RejectedSample[] {
  const samples: RejectedSample[] = []
  for (const { issues, excerpt } of rejected) {
    const issue = issues[0]
    if (issue === undefined) continue
    const { code, message, path } = issue
    samples.push({ orgId: key.orgId, keyId: key.id, atMs, code, message, path, excerpt: shown(excerpt) })
  }
  return samples
}

/** The sample of a request that was refused as a whole; `text` is '' when it could not be read as text. */
export function requestSample(key: Sender, atMs: number, error: AppError, text: string): RejectedSample {
  const { code, message } = error
  const path = error.details.issues?.[0]?.path ?? ''
  return { orgId: key.orgId, keyId: key.id, atMs, code, message, path, excerpt: shown(text) }
}

/** At most 4 KiB and whole characters. A raw NUL, possible where the text is no JSON, would end it for many tools. */
function shown(text: string): string {
  const start = text.slice(0, limits.rejectedExcerptBytesMax + 1).replaceAll('\0', '\u2400')
  return cutBytes(start, limits.rejectedExcerptBytesMax).toWellFormed()
}

/**
 * Keeps what ingest refused for the ingest-health page: gathered while a write runs, so that a flood costs few
 * writes.
 */
export interface Rejections {
  keep(samples: RejectedSample[]): void
  /** Resolves when what was kept so far is written, or could not be. */
  settled(): Promise<void>
}

/** No organization keeps more than its newest thousand, so more than that never needs to wait either. */
const waitingMax = 1_000

export function makeRejections(store: Pick<Store, 'rejected'>, log: Log): Rejections {
  let waiting: RejectedSample[] = []
  let writing: Promise<void> | null = null

  async function writeAll(): Promise<void> {
    while (waiting.length > 0) {
      const samples = waiting
      waiting = []
      // A sample helps somebody to mend a sender; losing one to a full disk must not fail the sender's request.
      await store.rejected.add(samples).catch((error: unknown) => {
        log.warn('rejected_samples_not_kept', { count: samples.length, message: String(error) })
      })
    }
    writing = null
  }

  return {
    keep(samples) {
      waiting = [...waiting, ...samples].slice(-waitingMax)
      writing ??= writeAll()
    },
    settled: async () => void (await writing),
  }
}

/** Refuses what a key without limits sends for sites that only keys naming them may write. */
export function restrictedIssue(): Issue {
  const message = 'is a restricted site; only ingest keys that name it may write it'
  return { path: 'siteId', code: 'wrong_site', message }
}

/** A key limited to sites names each one it may write, so only one without limits can meet a restricted site. */
export async function isRestricted(
  store: { sites: Pick<SiteStore, 'restricted'> },
  key: ApiKey,
  siteId: string,
): Promise<boolean> {
  return key.siteIds.length === 0 && (await store.sites.restricted(key.orgId)).has(siteId)
}

export async function refuseRestricted(
  store: { sites: Pick<SiteStore, 'restricted'> },
  key: ApiKey,
  accepted: Accepted,
): Promise<Accepted> {
  const sites = key.siteIds.length === 0 ? await store.sites.restricted(key.orgId) : null
  if (sites === null || sites.size === 0 || !accepted.records.some(({ siteId }) => sites.has(siteId)))
    return accepted
  const left: Accepted = { ...accepted, records: [], positions: [], rejected: [...accepted.rejected] }
  accepted.records.forEach((record, at) => {
    const position = accepted.positions[at] ?? 0
    if (sites.has(record.siteId)) {
      left.rejected.push(rejected(position, record, [restrictedIssue()], record.json))
    } else {
      left.records.push(record)
      left.positions.push(position)
    }
  })
  left.rejected.sort((a, b) => a.index - b.index)
  return left
}
