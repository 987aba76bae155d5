/** What the checks of `verify.ts` share: the organization they look at and how they say what is wrong. */

export interface VerifiedOrg {
  num: number
  foldedSeq: number
  segments: number
  /** The codes that have a term, by member. */
  codes: ReadonlySet<number>[]
}

export type Report = (place: string, problem: string) => void
