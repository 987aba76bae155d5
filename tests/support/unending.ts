/** The signal of a run that nobody ends, for jobs that a test runs itself. */
export const unending: AbortSignal = new AbortController().signal
