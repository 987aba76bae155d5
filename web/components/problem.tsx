/** The error of a failed request: what happened, what to do, and the request ID to quote. */
import './problem.css'
import type { ComponentChildren } from 'preact'
import type { ApiError } from '../api/api.ts'
import { furtherIssues } from './further-issues.ts'

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
      {error.requestId !== null && (
        <p class="muted">
          Request ID <code>{error.requestId}</code>
        </p>
      )}
      {props.children}
      {onRetry && (
        <button type="button" class="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  )
}
