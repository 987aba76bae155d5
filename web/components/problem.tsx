/** The error of a failed request: what happened, what to do, and the request ID to quote. */
import './problem.css'
import type { ComponentChildren } from 'preact'
import type { ApiError } from '../api/api.ts'

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
  const seen = new Set([error.message])
  return error.issues
    .map(({ message }) => message)
    .filter((message) => !seen.has(message) && seen.add(message))
    .join(' ')
}
