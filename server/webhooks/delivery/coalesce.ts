/** Runs a piece of work one at a time; whatever asks for it meanwhile is served by one more run behind it. */

/** The promise settles when a run that began after the call has ended. `work` must not reject. */
export function coalesce(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | null = null
  let isAskedAgain = false

  async function runs(): Promise<void> {
    while (isAskedAgain) {
      isAskedAgain = false
      await work()
    }
    running = null
  }

  return () => {
    isAskedAgain = true
    running ??= runs()
    return running
  }
}
