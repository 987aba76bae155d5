/** Changes the range of a page and carries it to other pages. */
import { isoTime } from '../app/clock.ts'
import { navigate, place, withQuery } from '../app/router.ts'
import { addressOf, choiceOf, type RangeChoice, rangeParams } from './range.ts'

/** Changes the range, the site or the comparison. Each change adds a history entry. */
export function chooseRange(change: Partial<RangeChoice>): void {
  const here = place.peek()
  const choice = { ...choiceOf(new URLSearchParams(here.search)), ...change }
  navigate(here.path + withQuery(here.search, addressOf(choice)))
}

/** Applies a range selected in a chart. */
export function chooseTimes(sinceMs: number, untilMs: number): void {
  chooseRange({ range: null, since: isoTime(sinceMs), until: isoTime(untilMs) })
}

let last = ''

/** The range fields of the last page of counts. */
export const lastRange = (): string => last

export function rememberRange(part: string): void {
  last = part
}

/** The parameters of a page opened by its plain link. */
export function nextPageParams(): URLSearchParams {
  return rangeParams(choiceOf(new URLSearchParams(last)))
}
