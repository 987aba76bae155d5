/** Time taken so that a busy machine does not count: it only ever adds to what work takes. */

/** Milliseconds of the quickest of some times that the work is done, one after the other. */
export async function quickestMs(work: () => unknown, times = 5): Promise<number> {
  let quickest = Infinity
  for (let n = 0; n < times; n++) {
    const startMs = performance.now()
    await work()
    quickest = Math.min(quickest, performance.now() - startMs)
  }
  return quickest
}
