/** The headline numbers of Overview, reports and shared pages: each counts one type, none is a sum of two. */
import { typeLabel, unitTypes } from './unit-types.ts'
import type { Change, EventCounts, HeadlineCount, Unit, WeekCounts } from './shapes.ts'

const none: EventCounts = { count: 0, before: 0, steps: [], outcomes: {} }

const hasAny = ({ count, before }: Pick<EventCounts, 'count' | 'before'>): boolean => count + before > 0

/** In the words of `web/text/measures.ts`. Without those that have no events in the range and the previous one. */
export function headlineCounts({ types, unit }: Pick<WeekCounts, 'types' | 'unit'>): HeadlineCount[] {
  const countsOf = (type: string): EventCounts => (Object.hasOwn(types, type) ? (types[type] ?? none) : none)
  const whole = (name: string, type: string): HeadlineCount => {
    const { count, before } = countsOf(type)
    const isComparable = type !== unit.type || unit.comparable
    return { name, type, count, before: isComparable ? before : null, outcomes: null }
  }
  const part = (name: string, type: string, isPart: (outcome: string) => boolean): HeadlineCount => {
    const outcomes = Object.entries(countsOf(type).outcomes).filter(([outcome]) => isPart(outcome))
    const sum = (of: 'count' | 'before') => outcomes.reduce((total, [, counts]) => total + counts[of], 0)
    const before = whole(name, type).before === null ? null : sum('before')
    return { name, type, count: sum('count'), before, outcomes: outcomes.map(([outcome]) => outcome) }
  }
  const isShown = (type: string): boolean => type === unit.type || hasAny(countsOf(type))
  const lines: HeadlineCount[] = []
  if (unit.label !== typeLabel(unitTypes[unit.name])) lines.push(whole(unit.label, unit.type))
  if (isShown(unitTypes.requests)) {
    lines.push(whole('Requests', unitTypes.requests))
    lines.push(part('Refused', unitTypes.requests, (outcome) => outcome === 'blocked'))
    lines.push(
      part('Failed', unitTypes.requests, (outcome) => outcome !== 'blocked' && outcome !== 'success'),
    )
  }
  if (isShown(unitTypes.visits)) lines.push(whole('Visits', unitTypes.visits))
  if (hasAny(countsOf('agent.referred'))) lines.push(whole('Referrals', 'agent.referred'))
  if (hasAny(countsOf('authz.evaluated'))) {
    lines.push(whole('Decisions', 'authz.evaluated'))
    lines.push(part('Blocked', 'authz.evaluated', (outcome) => outcome === 'blocked'))
  }
  if (hasAny(countsOf('tool.executed'))) {
    lines.push(whole('Tool calls', 'tool.executed'))
    lines.push(part('Tool errors', 'tool.executed', (outcome) => outcome === 'error'))
  }
  const isUnit = ({ type, outcomes, name }: HeadlineCount) =>
    type === unit.type && outcomes === null && name === unit.label
  return [...lines.filter(isUnit).slice(0, 1), ...lines.filter((line) => !isUnit(line))]
}

const counted = (count: number, one: string): string =>
  `${count.toLocaleString('en-GB')} ${one}${count === 1 ? '' : 's'}`

/** "40 visits at 2 sites without requests are not included." Null without such sites. */
export function besideText({ beside }: Unit): string | null {
  if (beside === null) return null
  const verb = beside.visits === 1 ? 'is' : 'are'
  return `${counted(beside.visits, 'visit')} at ${counted(beside.sites, 'site')} without requests ${verb} not included.`
}

/** What stands where the previous period is not comparable. */
export const notComparable = 'not comparable'

/** Why: a log or the SDK began or ended between the two periods. */
export const notComparableText =
  'The previous period is not comparable: some sites had requests in one of the two periods and only visits in the other.'

/** "sent its first 12 requests", "began its first visit", to follow the name of a new operator. */
export function firstText(count: number, unit: Change['unit']): string {
  if (unit === 'requests') return `sent its first ${counted(count, 'request')}`
  return unit === 'visits'
    ? `began its first ${counted(count, 'visit')}`
    : `sent its first ${counted(count, 'event')}`
}
