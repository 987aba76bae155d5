/** Changing the range of a page, and carrying it from page to page. */
import { isoTime } from '../app/clock.ts'
import { navigate, place, withQuery } from '../app/router.ts'
import { addressOf, choiceOf, type RangeChoice, rangeParams } from './range.ts'

/** Changes the range, the site or the comparison; every change is an entry of the browser's history. */
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

/** The range part of the address of the last page of counts. */
export const lastRange = (): string => last

export function rememberRange(part: string): void {
  last = part
}

/** The parameters of a page that is opened by its plain link now. */
export function nextPageParams(): URLSearchParams {
  return rangeParams(choiceOf(new URLSearchParams(last)))
}
