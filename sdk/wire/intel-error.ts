/** The one error that pushes and gateway calls reject with. */
import type { Issue } from '../client/problem.ts'

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
