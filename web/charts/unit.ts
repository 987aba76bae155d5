/** The number of a page in the unit of its range (contract §19), with its comparison and the visits beside it. */
import { counted } from '../text/format.ts'
import { countLine, type Headline } from './headlines.tsx'
import type { Unit } from '../api/api.ts'

/** The same words as in reports and on shared pages (server/counts/headlines.ts). */
const notComparable = 'not comparable'

/** "40 visits at 2 sites without requests are not included." Null without such sites. */
export function besideText({ beside }: Unit): string | null {
  if (beside === null) return null
  const verb = beside.visits === 1 ? 'is' : 'are'
  return `${counted(beside.visits, 'visit')} at ${counted(beside.sites, 'site')} without requests ${verb} not included.`
}

interface Counted {
  count: number
  before: number
}

/** `before`, where the previous period was counted in the same unit; else null, which draws no comparison. */
export function comparedBefore<B extends number | null>({ comparable }: Unit, before: B): B | null {
  return comparable ? before : null
}

/** The headline in the unit: how many requests, or visits where no site has requests, or the one type of the filter. */
export function unitLine(unit: Unit, { count, before }: Counted): Headline & { kind: 'count' } {
  const line = countLine({ name: unit.label }, { count, before: comparedBefore(unit, before) })
  const notes = [unit.comparable ? null : notComparable, besideText(unit)].filter((note) => note !== null)
  return notes.length === 0 ? line : { ...line, note: notes.join('. ') }
}
