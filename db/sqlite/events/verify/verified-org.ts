/** What the checks of `verify.ts` share: the organization they look at and how they say what is wrong. */

export interface VerifiedOrg {
  num: number
  segments: number
  /** The codes that have a term, by member. */
  codes: ReadonlySet<number>[]
}

export type Report = (place: string, problem: string) => void

/**
 * A check that may take minutes: each yield stands between two read transactions, or the log behind a busy writer would
 * grow for as long. What was read before it may have changed after it.
 */
export type Check<T = void> = Generator<void, T>
