/** What the client tells its host when something goes wrong: through `onError`, never by throwing. */
import { nowMs } from '../platform/clock.ts'

export type ProblemCode =
  | 'invalid_event' // the host's event could not be taken; it is not sent
  | 'event_too_large'
  | 'no_session' // a server traced without a session, so its visitors share one; said once
  | 'queue_full' // events are being dropped; `count` says how many since the last report
  | 'unreachable' // the appliance does not answer; it is tried again, with growing pauses
  | 'refused' // wrong key, wrong address or TLS failure; tried again only every five minutes
  | 'rejected' // the appliance did not want `count` events; `issues` says why
  | 'spool_failed' // events are kept in memory only
  | 'unsent' // `close` gave up on `count` events
  | 'exporter_failed' // an exporter of your own threw

/** One thing wrong with one event, in the words of the appliance. */
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

const quietMs = 60_000

/**
 * Calls the host's function, whose own faults stay its own. Without one it warns on the console, of each kind of
 * problem at most once a minute: a mistake on a busy path must not drown the host's log.
 */
export function reporter(onError: OnError | undefined): OnError {
  const saidMs = new Map<ProblemCode, number>()
  const warn = ({ code, message }: Problem): void => {
    const ms = nowMs()
    if (ms - (saidMs.get(code) ?? Number.NEGATIVE_INFINITY) < quietMs) return
    saidMs.set(code, ms)
    console.warn(`sightglass: ${message}`)
  }
  return (problem) => {
    try {
      if (onError === undefined) warn(problem)
      else onError(problem)
    } catch {
      // A report that fails must not take down what it reports about.
    }
  }
}
