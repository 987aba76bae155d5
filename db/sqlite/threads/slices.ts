/**
 * Long reads run in slices: a generator that yields whenever its slice is used up, so that the questions of other
 * organizations are answered in between. A read that ends within its slice never yields.
 */
export type Sliced<T> = Generator<void, T>

let endMs = -Infinity

/** Whoever runs a generator begins each slice; without one, every chance to yield is taken. */
export function beginSlice(ms: number): void {
  endMs = performance.now() + ms
}

export function isSliceOver(): boolean {
  return performance.now() >= endMs
}

/** Runs all slices one after the other: for threads that have nothing else to answer. */
export function atOnce<T>(work: Sliced<T>): T {
  for (;;) {
    const slice = work.next()
    if (slice.done) return slice.value
  }
}

export function isSliced(result: unknown): result is Sliced<unknown> {
  return typeof result === 'object' && result !== null && Symbol.iterator in result && 'throw' in result
}
