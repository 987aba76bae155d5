/**
 * Long work on the HTTP thread in slices of 5 ms: one slice in each turn of the event loop, of whichever work waits.
 * The organizations with waiting work take turns, so that the many requests of one delay those of another by one slice.
 */

/** The work of one request. */
export interface Work {
  /** Undefined while its slice lasts; afterwards a promise that resolves when the next one begins. */
  pause(): Promise<void> | undefined
  /** Begins the next slice. Before a step that takes long by itself. */
  nextSlice(): Promise<void>
}

interface Slices {
  begin(orgId: string): Work
}

const sliceMs = 5

export function makeSlices(
  nextTurn: (go: () => void) => unknown = setImmediate,
  nowMs: () => number = () => performance.now(),
): Slices {
  const waiting = new Map<string, (() => void)[]>() // by organization; the first one is next
  let isScheduled = false

  function runNext(): void {
    isScheduled = false
    for (const [orgId, works] of waiting) {
      const go = works.shift()
      waiting.delete(orgId)
      if (works.length > 0) waiting.set(orgId, works)
      if (waiting.size > 0) schedule()
      go?.()
      return
    }
  }

  function schedule(): void {
    if (isScheduled) return
    isScheduled = true
    nextTurn(runNext)
  }

  return {
    begin(orgId) {
      let startedMs = nowMs()
      const nextSlice = (): Promise<void> =>
        new Promise((resolve) => {
          const works = waiting.get(orgId) ?? []
          waiting.set(orgId, works)
          works.push(() => {
            startedMs = nowMs()
            resolve()
          })
          schedule()
        })
      return {
        nextSlice,
        pause: () => (nowMs() - startedMs < sliceMs ? undefined : nextSlice()),
      }
    },
  }
}

/** Of all requests of this process, because they share its HTTP thread. */
export const slices = makeSlices()

/** Runs steps to their end, with a pause after any of them. */
export async function inSlices<Result>(steps: Generator<unknown, Result>, work: Work): Promise<Result> {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
    const pause = work.pause()
    if (pause !== undefined) await pause
  }
}

/** Runs steps to their end at once, for input that is small. */
export function atOnce<Result>(steps: Generator<unknown, Result>): Result {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}
