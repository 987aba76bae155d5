/** The error of a failed request, and the task that runs a request for a user's action. */
import './problem.css'
import { useSignal, type Signal } from '@preact/signals'
import { asApiError } from '../app/session.ts'
import type { ComponentChildren } from 'preact'
import type { ApiError } from '../api/api.ts'

/** Shows what happened, what to do, and the request ID to quote. */
export function Problem(props: { error: ApiError; onRetry?: () => void; children?: ComponentChildren }) {
  const { error, onRetry } = props
  return (
    <div class="problem" role="alert">
      <p>
        <strong>{error.message}</strong>
        {` ${furtherIssues(error)}`}
      </p>
      {error.retryAfterS !== null && <p>Try again in {error.retryAfterS} s.</p>}
      {error.hint !== null && <p>{error.hint}</p>}
      {props.children}
      {error.requestId !== null && (
        <p class="muted">
          Request ID <code>{error.requestId}</code>
        </p>
      )}
      {onRetry && (
        <button type="button" class="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  )
}

/** The issue texts of an error that differ from its message; many errors repeat it. */
export function furtherIssues(error: { message: string; issues: { message: string }[] }): string {
  const messages = new Set([error.message])
  return error.issues
    .map(({ message }) => message)
    .filter((message) => !messages.has(message) && messages.add(message))
    .join(' ')
}

/** One user action that calls the server: never twice at once, with its busy state and error. */
interface Task {
  busy: Signal<boolean>
  problem: Signal<ApiError | null>
  /** Does nothing while a call is running. Resolves to true if the work succeeded. */
  run(work: () => Promise<void>): Promise<boolean>
}

export function useTask(): Task {
  const busy = useSignal(false)
  const problem = useSignal<ApiError | null>(null)
  return {
    busy,
    problem,
    async run(work) {
      if (busy.value) return false
      busy.value = true
      problem.value = null
      try {
        await work()
        return true
      } catch (error) {
        problem.value = asApiError(error)
        return false
      } finally {
        busy.value = false
      }
    },
  }
}
