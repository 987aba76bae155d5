/** Measures time so that a busy machine does not matter: other load only adds to it. */

/** Milliseconds of the quickest of several runs, one after the other. */
export async function quickestMs(work: () => unknown, times = 5): Promise<number> {
  let quickest = Infinity
  for (let n = 0; n < times; n++) {
    const startMs = performance.now()
    await work()
    quickest = Math.min(quickest, performance.now() - startMs)
  }
  return quickest
}
