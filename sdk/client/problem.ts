/** What the client tells its host when something goes wrong: through `onError`, never by throwing. */

export type ProblemCode =
  | 'invalid_event' // the host's event could not be taken; it is not sent
  | 'event_too_large'
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

/** Calls the host's function, whose own faults stay its own; without one, warns on standard error. */
export function reporter(onError: OnError | undefined): OnError {
  return (problem) => {
    try {
      if (onError !== undefined) onError(problem)
      else console.warn(`sightglass: ${problem.message}`)
    } catch {
      // A report that fails must not take down what it reports about.
    }
  }
}
