/** What happened on the sites by kind, as lines: each counts one measure, because their units do not add up. */
import { measures, type Measure } from '../text/measures.ts'
import type { WeekCounts } from '../api/api.ts'
import type { Series } from './chart-model.ts'

const kinds: { measure: Measure; colour: string }[] = [
  { measure: measures.requests, colour: 'series-5' },
  { measure: measures.visits, colour: 'series-4' },
  { measure: measures.referrals, colour: 'series-7' },
  { measure: measures.identities, colour: 'series-6' },
  { measure: measures.decisions, colour: 'series-2' },
  { measure: measures.toolCalls, colour: 'series-1' },
  { measure: measures.reads, colour: 'series-3' },
]

/** Kinds with events in the range, the unit of the range first. `value` is the event type. */
export function kindSeries({ types, unit }: Pick<WeekCounts, 'types' | 'unit'>): Series[] {
  const rank = ({ measure }: (typeof kinds)[number]): number => (measure.type === unit.type ? 0 : 1)
  const sorted = kinds.toSorted((a, b) => rank(a) - rank(b))
  return sorted.flatMap(({ measure, colour }): Series[] => {
    const { type } = measure
    const counts = type !== null && Object.hasOwn(types, type) ? types[type] : undefined
    if (counts === undefined || counts.count === 0) return []
    return [{ name: measure.name, value: type, colour, counts: counts.steps }]
  })
}
