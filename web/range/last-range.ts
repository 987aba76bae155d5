/** The range that goes along from page to page: what the last page of counts had in its address. */
import { askedOf, choiceOf } from './range.ts'

let last = ''

export const lastRange = (): string => last

export function rememberRange(part: string): void {
  last = part
}

/** The question of a page that is opened by its plain link now. */
export function askedNext(): URLSearchParams {
  return askedOf(choiceOf(new URLSearchParams(last)))
}
