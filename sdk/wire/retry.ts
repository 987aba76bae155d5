/**
 * Retries a call to the appliance until it succeeds, is refused, or reaches its deadline. Pauses between attempts grow,
 * can be cut short and keep no process alive.
 */
import { request, verdictOf, type Call, type Verdict } from './request.ts'
import type { Issue } from '../client/problem.ts'
import type { Connection } from './connection.ts'

export interface RetryOptions {
  nowMs: () => number
  /** Time from the first attempt to the rejection. */
  deadlineMs: number
}

/** Resolves with the response body, or rejects with an `IntelError` for the last attempt. */
export async function callWithRetries(
  connection: Connection,
  call: Call,
  { nowMs, deadlineMs }: RetryOptions,
): Promise<{ [field: string]: unknown }> {
  const endMs = nowMs() + deadlineMs
  const stop = new AbortController()
  const timer = setTimeout(() => stop.abort(), deadlineMs)
  try {
    for (let attempt = 0; ; attempt++) {
      const verdict = verdictOf(await request(connection, { ...call, signal: stop.signal }), nowMs())
      if (verdict.kind === 'done') return verdict.body
      if (verdict.kind !== 'retry') throw errorOf(verdict)
      const waitMs = Math.max(backoffMs(attempt, 500, 10_000, Math.random), verdict.waitMs ?? 0)
      if (nowMs() + waitMs >= endMs) throw errorOf(verdict)
      await pause(waitMs).over
    }
  } finally {
    clearTimeout(timer)
  }
}

function errorOf(verdict: Exclude<Verdict, { kind: 'done' }>): IntelError {
  const status = 'status' in verdict ? verdict.status : verdict.kind === 'too_large' ? 413 : 415
  const issues: Issue[] = verdict.kind === 'rejected' ? verdict.issues : []
  const message =
    'message' in verdict ? verdict.message : 'the appliance does not accept this content-encoding'
  return new IntelError(message, { status, issues, cause: 'cause' in verdict ? verdict.cause : undefined })
}

/** The error of pushes and gateway calls. */
export class IntelError extends Error {
  /** Status of the last response, or null without one. */
  readonly status: number | null
  /** Validation issues of the body. */
  readonly issues: Issue[]
  constructor(message: string, details: { status: number | null; issues?: Issue[]; cause?: unknown }) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = 'IntelError'
    this.status = details.status
    this.issues = details.issues ?? []
  }
}

/** Doubles from `minMs` to `maxMs`, half of it random, so that clients do not retry at the same time. */
export function backoffMs(attempt: number, minMs: number, maxMs: number, random: () => number): number {
  const stepMs = Math.min(maxMs, minMs * 2 ** Math.min(attempt, 30))
  return stepMs / 2 + (stepMs / 2) * random()
}

export interface Pause {
  over: Promise<void>
  /** Ends it now. */
  cut(): void
}

export function pause(ms: number): Pause {
  let cut = (): void => {}
  const completion = new Promise<void>((resolve) => {
    const timer = unref(setTimeout(resolve, ms))
    cut = () => {
      clearTimeout(timer)
      resolve()
    }
  })
  return { over: completion, cut }
}

/** Node.js and Bun wait for timers before they exit. In other runtimes a timer is a number. */
export function unref<Timer>(timer: Timer): Timer {
  ;(timer as { unref?: () => unknown }).unref?.()
  return timer
}
