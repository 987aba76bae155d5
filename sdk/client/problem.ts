/** The problems that the client reports to `onError`. It never throws them. */
import { nowMs } from '../platform/clock.ts'

export type ProblemCode =
  | 'invalid_event' // an event is invalid and was not sent
  | 'event_too_large'
  | 'no_session' // a server traced without a session, so its visitors share one; reported once
  | 'queue_full' // `count` events were dropped since the last report
  | 'unreachable' // the appliance does not respond; the client retries with growing pauses
  | 'refused' // wrong key, wrong address or TLS failure; the client retries every 5 minutes
  | 'rejected' // the appliance rejected `count` events; `issues` has the reasons
  | 'spool_failed' // waiting events are in memory only
  | 'unsent' // `count` events were not sent before `close` ended
  | 'exporter_failed' // a custom exporter threw
  | 'hook_failed' // an option of the middleware threw
  | 'evidence_failed' // `loadEvidence` failed; it is tried again with growing pauses

/** One problem of one event, as the appliance reports it. */
export interface Issue {
  path: string
  message: string
  code: string
  index?: number
  id?: string
}

export interface Problem {
  code: ProblemCode
  message: string
  status?: number
  count?: number
  issues?: Issue[]
  cause?: unknown
}

export type OnError = (problem: Problem) => void

/** "1 event", "2 events". */
export const plural = (count: number): string => `${count} event${count === 1 ? '' : 's'}`

const quietMs = 60_000

/**
 * Calls `onError` and ignores its errors. Without `onError`, it logs each kind of problem at most once per minute with
 * `console.warn`, so that a mistake on a busy path does not flood the log.
 */
export function reporter(onError: OnError | undefined): OnError {
  const loggedMs = new Map<ProblemCode, number>()
  const warn = ({ code, message }: Problem): void => {
    const ms = nowMs()
    if (ms - (loggedMs.get(code) ?? Number.NEGATIVE_INFINITY) < quietMs) return
    loggedMs.set(code, ms)
    console.warn(`sightglass: ${message}`)
  }
  return (problem) => {
    try {
      if (onError === undefined) warn(problem)
      else onError(problem)
    } catch {
      // A failing report must not stop the client.
    }
  }
}
