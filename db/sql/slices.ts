/**
 * Long reads run in slices: a generator yields when its slice is used up, so that reads of other organizations run in
 * between. A read that ends within its slice never yields. It may yield its progress, a share from 0 to 1.
 */
export type Sliced<T> = Generator<number | void, T>

let endMs = -Infinity

/** The runner of a generator begins each slice. Without one, the generator yields at every chance. */
export function beginSlice(ms: number): void {
  endMs = performance.now() + ms
}

export function isSliceOver(): boolean {
  return performance.now() >= endMs
}

/** Runs all slices in turn, for threads that have nothing else to answer. */
export function atOnce<T>(work: Sliced<T>): T {
  for (;;) {
    const slice = work.next()
    if (slice.done) return slice.value
  }
}

export function isSliced(result: unknown): result is Sliced<unknown> {
  return typeof result === 'object' && result !== null && Symbol.iterator in result && 'throw' in result
}
