/** The signal of a run that is never aborted, for jobs that a test runs itself. */
export const unending: AbortSignal = new AbortController().signal
