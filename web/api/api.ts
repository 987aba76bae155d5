/** The HTTP client of the dashboard: typed calls, and one error type for every failure. */
import { basePath } from './base-path.ts'
import { filterParams, type EventFilter, type ReceivedEvent, type TraceEvent } from './event-shapes.ts'
import { sharedLive } from './shared-live.ts'
import type {
  ActiveAgents,
  AnalyticsCounts,
  AuthCounts,
  AuthzCounts,
  CallDurations,
  Changes,
  DetectClaims,
  DetectCounts,
  DetectMatrix,
  DetectRequests,
  DetectResponses,
  DetectTrust,
  IdentityDetail,
  Totals,
  VendorDetail,
  WeekCounts,
  Why,
} from '../../server/counts/shapes.ts'
import type { OverviewVisitView } from '../../server/dashboard/routes.ts'
import type { ErrorCode, Issue } from '../../server/errors.ts'
import type { FirstSource } from '../../server/access/source-routes.ts'
import type { KeyView } from '../../server/identity/keys/routes.ts'
import type { SessionView } from '../../server/identity/sign-in/routes.ts'
import type { KnaphCounts } from '../../server/api/registry/memory-routes.ts'
import type { ToolCalls } from '../../server/api/registry/tool-routes.ts'
import type { ExploreAnswer } from '../../server/api/explore/routes.ts'
import type { Histogram } from '../../server/api/traces/histogram.ts'
import type { SessionView as AgentSession } from '../../server/api/sessions/routes.ts'

export type * from '../../server/counts/shapes.ts'
export type { FirstSource } from '../../server/access/source-routes.ts'
export type { KnaphCounts } from '../../server/api/registry/memory-routes.ts'
export type { ToolCallRow, ToolCalls } from '../../server/api/registry/tool-routes.ts'
export type { ExploreAnswer } from '../../server/api/explore/routes.ts'
export type { Histogram } from '../../server/api/traces/histogram.ts'
export type * from './event-shapes.ts'

/** The responses of pages of counts, by their path below /api/. */
export interface PageCounts {
  detect: DetectCounts
  'detect/claims': DetectClaims
  'detect/matrix': DetectMatrix
  'detect/requests': DetectRequests
  'detect/responses': DetectResponses
  'detect/trust': DetectTrust
  'detect/vendor': VendorDetail
  auth: AuthCounts
  'auth/identities': IdentityDetail
  authz: AuthzCounts
  analytics: AnalyticsCounts
  'analytics/active': ActiveAgents
  'analytics/durations': CallDurations
  'tools/calls': ToolCalls
  week: WeekCounts
  knaph: KnaphCounts
}

export type Session = SessionView
export type Role = Session['role']
export type Key = KeyView
export type KeyKind = Key['kind']

/** The password was correct; the session starts after a code. */
interface HalfSignedIn {
  secondFactor: true
  token: string
}

export interface Overview {
  total: number
  byType: { [type: string]: number }
}

export interface KeyWanted {
  kind: KeyKind
  label: string
  scopes?: string[]
  siteIds?: string[]
  behindProxy?: boolean
  expiresAt?: string | null
}

export interface EventPage {
  events: ReceivedEvent[]
  nextCursor: string | null
  live: string // position at which the live stream continues without a gap
}

/** A failed request, with a message that a page can show. Support asks for `requestId`. */
export class ApiError extends Error {
  readonly status: number // 0: no response
  readonly code: ErrorCode | 'unreachable' | 'not_ours'
  readonly hint: string | null
  readonly requestId: string | null
  readonly issues: Issue[]
  readonly retryAfterS: number | null
  constructor(
    status: number,
    code: ApiError['code'],
    message: string,
    details: {
      hint?: string | null
      requestId?: string | null
      issues?: Issue[]
      retryAfterS?: number | null
    } = {},
  ) {
    super(message)
    this.name = 'ApiError'
    this.status = status
    this.code = code
    this.hint = details.hint ?? null
    this.requestId = details.requestId ?? null
    this.issues = details.issues ?? []
    this.retryAfterS = details.retryAfterS ?? null
  }
}

let signedOut: () => void = () => {}

/** Called when the sign-in has ended. */
export function onSignedOut(listener: () => void): void {
  signedOut = listener
}

let factorNeeded: () => void = () => {}

/** Called when the organization requires a second factor that this account lacks. */
export function onFactorNeeded(listener: () => void): void {
  factorNeeded = listener
}

let cookie = { isChanging: false, idle: new AbortController() }

/** Aborts when the sign-in ends; for prefetches. */
export const idleSignal = (): AbortSignal => cookie.idle.signal

/**
 * Runs a call that replaces or removes the cookie. Aborts requests with the old cookie, whose rejection would look
 * as if the sign-in had ended.
 */
export async function changingCookie<T>(call: () => Promise<T>): Promise<T> {
  cookie.isChanging = true
  cookie.idle.abort()
  try {
    return await call()
  } finally {
    cookie = { isChanging: false, idle: new AbortController() }
  }
}

function unreachable(): ApiError {
  return new ApiError(0, 'unreachable', 'Sightglass is not responding.', {
    hint: 'Check that it is running and reachable from this computer, then try again.',
  })
}

/** The error of a response. A proxy in between may respond with a body that is not ours. */
async function errorOf(answer: Response): Promise<ApiError> {
  const retryAfter = Number(answer.headers.get('retry-after') ?? 'none')
  const retryAfterS = Number.isFinite(retryAfter) ? retryAfter : null
  const requestId = answer.headers.get('x-request-id')
  const body: unknown = await answer.json().catch(() => null)
  return (
    failureIn(body, { status: answer.status, requestId, retryAfterS }) ??
    new ApiError(answer.status, 'not_ours', `Unexpected response with status ${answer.status}.`, {
      hint: 'If a proxy is in front of Sightglass, check its log.',
      requestId,
      retryAfterS,
    })
  )
}

interface FailureBody {
  error: ErrorCode
  message: string
  reason?: string
  hint?: string
  issues?: Issue[]
  requestId?: string
}

/** The error in a body of ours; null for any other body. */
function failureIn(
  body: unknown,
  { status, requestId, retryAfterS }: Pick<ApiError, 'status' | 'requestId' | 'retryAfterS'>,
): ApiError | null {
  if (typeof body !== 'object' || body === null || !('error' in body) || !('message' in body)) return null
  const failure = body as FailureBody
  if (failure.reason === 'second_factor_required') factorNeeded()
  return new ApiError(status, failure.error, failure.message, {
    hint: failure.hint ?? null,
    requestId: failure.requestId ?? requestId,
    issues: failure.issues ?? [],
    retryAfterS,
  })
}

const ask = (url: string, init: RequestInit): Promise<Response> =>
  fetch(basePath + url, { credentials: 'same-origin', cache: 'no-store', ...init })

/** Throws an `ApiError` for every failed response. A 401 leads to the sign-in page. */
async function checked(
  request: Promise<Response>,
  signal?: AbortSignal | null,
  signingIn = false,
): Promise<Response> {
  const sentWith = cookie
  const answer = await request.catch((cause: unknown) => {
    if (signal?.aborted) throw cause
    throw unreachable()
  })
  if (answer.ok) return answer
  const error = await errorOf(answer)
  if (answer.status === 401 && !signingIn && sentWith === cookie && !cookie.isChanging) signedOut()
  throw error
}

/** One request. The sign-in calls handle their own 401, which means a wrong password. */
export function exchange(url: string, init: RequestInit, signingIn = false): Promise<Response> {
  return checked(ask(url, init), init.signal, signingIn)
}

/** A 200 with an unexpected body, such as a proxy's page or a cut connection, is an error. */
export async function json<T>(answer: Response): Promise<T> {
  try {
    return (await answer.json()) as T
  } catch {
    throw new ApiError(answer.status, 'not_ours', 'The response could not be parsed.', {
      hint: 'If a proxy is in front of Sightglass, check its log. Otherwise try again.',
      requestId: answer.headers.get('x-request-id'),
    })
  }
}

export async function get<T>(url: string, signal?: AbortSignal): Promise<T> {
  return json<T>(await exchange(url, signal ? { signal } : {}))
}

export function post(url: string, body: unknown, signingIn = false): Promise<Response> {
  const headers = { 'content-type': 'application/json' }
  return exchange(url, { method: 'POST', headers, body: JSON.stringify(body) }, signingIn)
}

/** A line of a query with progress. The last one has the result or the error. */
type QueryLine = { progress: number } | { result: ExploreAnswer } | { error: FailureBody }

async function lastLine(
  answer: Response,
  signal: AbortSignal,
  onProgress: (share: number) => void,
): Promise<ExploreAnswer> {
  let remainder = ''
  try {
    for await (const text of answer.body!.pipeThrough(new TextDecoderStream())) {
      const lines = (remainder + text).split('\n')
      remainder = lines.pop() ?? ''
      for (const line of lines) {
        const queryLine = JSON.parse(line) as QueryLine
        if ('result' in queryLine) return queryLine.result
        if ('error' in queryLine)
          throw (
            failureIn(queryLine.error, { status: 503, requestId: null, retryAfterS: null }) ?? unreachable()
          )
        onProgress(queryLine.progress)
      }
    }
  } catch (cause) {
    if (signal.aborted || cause instanceof ApiError) throw cause
  }
  throw unreachable()
}

export const api = {
  /** Whether the appliance has an owner, and whether this browser is signed in. */
  entryState: () => get<{ needsOwner: boolean; signedIn: boolean; provider: string | null }>('/api/setup'),
  createOwner: async (owner: { token: string; email: string; password: string }) =>
    json<Session>(await post('/api/setup', owner, true)),
  signIn: async (credentials: { email: string; password: string }) =>
    json<Session | HalfSignedIn>(await post('/api/sign-in', credentials, true)),
  /** The second step of sign-in, with a code from the authenticator app or a recovery code. */
  signInWithCode: async (proof: { token: string; code: string }) =>
    json<Session>(await post('/api/sign-in/code', proof, true)),
  signOut: async () => void (await post('/api/sign-out', {})),
  resetPassword: async (reset: { token: string; password: string }) =>
    void (await post('/api/reset-password', reset, true)),

  session: () => get<Session>('/api/session'),
  overview: () => get<Overview>('/api/overview'),

  keys: async (kind: KeyKind, signal: AbortSignal) =>
    (await get<{ keys: Key[] }>(`/api/keys?kind=${kind}`, signal)).keys,
  createKey: async (key: KeyWanted) => json<{ key: Key; secret: string }>(await post('/api/keys', key)),
  revokeKey: async (id: string) =>
    (await json<{ key: Key }>(await post(`/api/keys/${encodeURIComponent(id)}/revoke`, {}))).key,

  counts: <P extends keyof PageCounts>(page: P, params: URLSearchParams, signal?: AbortSignal) =>
    get<PageCounts[P]>(`/api/${page}?${params}`, signal),
  changes: (since: string, signal?: AbortSignal) =>
    get<Changes>(`/api/changes?${new URLSearchParams({ since })}`, signal),
  overviewVisit: (signal?: AbortSignal) =>
    get<{ visit: OverviewVisitView | null }>('/api/overview/visit', signal),
  /** Returns what the account knows now. Arrives also when the page is closed. */
  noteOverviewVisit: async (visit: OverviewVisitView) =>
    json<{ visit: OverviewVisitView }>(
      await exchange('/api/overview/visit', {
        method: 'POST',
        keepalive: true,
        body: JSON.stringify(visit),
        headers: { 'content-type': 'application/json' },
      }),
    ),
  totals: (params: URLSearchParams) => get<Totals>(`/api/totals?${params}`),
  firstSource: (signal?: AbortSignal) => get<FirstSource>('/api/sources/first', signal),
  why: (id: string, signal: AbortSignal) => get<Why>(`/api/authz/why/${encodeURIComponent(id)}`, signal),
  keyLabels: (signal: AbortSignal) => get<{ labels: { [id: string]: string } }>('/api/key-labels', signal),
  /** Events by any filter of GET /v1/traces, newest first. */
  eventsWhere: (params: URLSearchParams, signal?: AbortSignal) =>
    get<EventPage>(`/api/events?${params}`, signal),

  events: (
    filter: EventFilter,
    page: { limit: number; cursor?: string | null; until?: string | null },
    signal?: AbortSignal,
  ) => {
    // A cursor contains its filters, so it is sent alone.
    const params = page.cursor ? new URLSearchParams({ cursor: page.cursor }) : filterParams(filter)
    params.set('limit', `${page.limit}`)
    if (page.until && !page.cursor) params.set('until', page.until)
    return get<EventPage>(`/api/events?${params}`, signal)
  },
  histogram: (filter: EventFilter, timeZone: string, signal: AbortSignal) => {
    const params = filterParams(filter)
    params.set('zone', timeZone)
    return get<Histogram>(`/api/histogram?${params}`, signal)
  },
  /** A query that reports its progress, from 0 to 1, while it runs. Aborting it ends its work on the server. */
  explore: async (params: URLSearchParams, signal: AbortSignal, onProgress: (share: number) => void) => {
    const init = { signal, headers: { accept: 'application/x-ndjson' } }
    return lastLine(await exchange(`/api/explore?${params}`, init), signal, onProgress)
  },
  /** The response as text, because JSON.parse would round numbers. */
  eventText: async (id: string, signal: AbortSignal) =>
    (await exchange(`/api/events/${encodeURIComponent(id)}`, { signal })).text(),
  live: (filter: EventFilter, position: string, signal: AbortSignal) => {
    const params = filterParams(filter)
    params.set('after', position)
    const init = { signal, headers: { accept: 'text/event-stream' } }
    const direct = () => ask(`/api/live?${params}`, init)
    return checked(sharedLive({ base: basePath, filter, after: position, signal, direct }), signal)
  },
}

/** With `truncated`, the session has more events; the newest were counted. */
export type { AgentSession }

export interface SessionPage {
  sessions: AgentSession[] // newest first
  nextCursor: string | null
}

export interface SessionStory {
  session: AgentSession
  events: TraceEvent[] // oldest first
  nextCursor: string | null
}

export const sessionApi = {
  /** `params` are filters of GET /v1/sessions, or only a cursor. */
  list: (params: URLSearchParams, signal: AbortSignal) => get<SessionPage>(`/api/sessions?${params}`, signal),
  story: (id: string, cursor: string | null, signal: AbortSignal) => {
    const queryText = cursor === null ? '' : `?${new URLSearchParams({ cursor })}`
    return get<SessionStory>(`/api/sessions/${encodeURIComponent(id)}${queryText}`, signal)
  },
}
