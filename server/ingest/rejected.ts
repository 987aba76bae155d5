/** What came of the events of a request: the records to store, and what was rejected and why. */
import type { EventRecord, GuardRail, RailedEvent } from '../../db/contract/store.ts'
import { AppError, type Issue } from '../errors.ts'
import { limits } from '../limits.ts'
import type { OverLimit } from './outline.ts'
import { cutBytes, cutChars, isKeepable } from '../text/text.ts'

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
