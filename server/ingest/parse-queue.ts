/** Large bodies are taken apart one a turn of the event loop, so that reads and refusals come in between. */

/** What takes longer to take apart than waiting for a turn costs. */
const largeBytes = 16 * 1024

export interface Turns {
  /** Fulfilled when it is this body's turn; at once for a small one. */
  take(bytes: number): Promise<void> | undefined
  /** Of the bodies whose turn has not come. */
  waitingBytes(): number
}

export function makeTurns(nextTurn: (go: () => void) => unknown = setImmediate): Turns {
  let waiting: { bytes: number; go: () => void }[] = []
  let taken = 0 // of those waiting, from the first
  let waitingBytes = 0
  let isRunning = false

  function next(): void {
    const one = waiting[taken]
    if (one === undefined) {
      waiting = []
      taken = 0
      isRunning = false
      return
    }
    taken++
    waitingBytes -= one.bytes
    nextTurn(next)
    one.go()
  }

  return {
    take(bytes) {
      if (bytes < largeBytes) return undefined
      if (!isRunning) {
        isRunning = true
        nextTurn(next)
        return undefined
      }
      waitingBytes += bytes
      return new Promise((go) => waiting.push({ bytes, go }))
    },
    waitingBytes: () => waitingBytes,
  }
}
