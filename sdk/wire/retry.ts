/** Repeats one call to the appliance until it is taken, refused, or a minute has passed. */
import { backoffMs, pause } from './pause.ts'
import { request, type Call } from './request.ts'
import { verdictOf, type Verdict } from './verdict.ts'
import type { Issue } from '../client/problem.ts'
import type { Connection } from './connection.ts'

export interface RetryOptions {
  nowMs: () => number
  /** From the first attempt to the rejection, 60,000 by default. */
  deadlineMs: number
}

/** Resolves with the answer's members; rejects with an `IntelError` that says what happened last. */
export async function callWithRetries(
  connection: Connection,
  call: Call,
  { nowMs, deadlineMs }: RetryOptions,
): Promise<{ [member: string]: unknown }> {
  const endMs = nowMs() + deadlineMs
  const stop = new AbortController()
  const timer = setTimeout(() => stop.abort(), deadlineMs)
  try {
    for (let attempt = 0; ; attempt++) {
      const verdict = verdictOf(await request(connection, { ...call, signal: stop.signal }), nowMs())
      if (verdict.kind === 'done') return verdict.body
      if (verdict.kind !== 'again') throw errorOf(verdict)
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
  const message = 'message' in verdict ? verdict.message : 'the appliance does not take this encoding'
  return new IntelError(message, { status, issues, cause: 'cause' in verdict ? verdict.cause : undefined })
}

/** The one error that pushes and gateway calls reject with. */
export class IntelError extends Error {
  /** Of the last answer; null when there was none. */
  readonly status: number | null
  /** What was wrong with which part of a body. */
  readonly issues: Issue[]
  constructor(message: string, details: { status: number | null; issues?: Issue[]; cause?: unknown }) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = 'IntelError'
    this.status = details.status
    this.issues = details.issues ?? []
  }
}
