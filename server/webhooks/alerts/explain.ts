/** Names the values of fields that explain most of a change: "82 % of the rise … comes from GPTBot on /docs/*". */
import type { MeasureDefinition, RuleFilter } from '../../../db/contract/alerts.ts'
import { pageFilterName } from '../../../db/contract/event-fields.ts'
import type { CountedMember, FilteredCounts, Store } from '../../../db/contract/store.ts'
import { storeFilter } from './definition.ts'
import { comparedSince } from './measures.ts'
import { hourMs, weekMs } from '../../../db/contract/units.ts'

/** A value and its events before and now; a page may be a prefix such as `/docs/*`. */
interface Cause {
  field: string
  value: string
  before: number
  now: number
}

/** Exact counts of stored events. The causes narrow each other: the last one's numbers are those of all together. */
interface Explanation {
  comparedWith: 'week before' | 'window before'
  before: number
  now: number
  causes: Cause[]
}

const budgetMs = 1_000
/** Values that explain less are not named. */
const leastShare = 0.3
/** A second value is named when it is in this share of the change of the first. */
const secondShare = 0.75
const pagesOfPrefix = 200

const ofAgent: readonly CountedMember[] = ['name', 'vendor', 'class', 'purpose', 'verdict', 'trust']
const ofRequest: readonly CountedMember[] = [
  'page',
  'tool',
  'decision',
  'ruleId',
  'reason',
  'protocol',
  'robots',
]

type Named = { field: string; value: string; pages?: string[] }

/** Null when nothing changed, nothing stands out, or there are too many events to count in time. */
export async function explain(
  store: Pick<Store, 'health'> & {
    events: Pick<Store['events'], 'filteredCounts'>
    retention: Pick<Store['retention'], 'firstHour'>
  },
  { orgId, definition, group }: { orgId: string; definition: MeasureDefinition; group: string },
  now: number,
): Promise<Explanation | null> {
  const windowMs = definition.windowMinutes * 60_000
  const { events, retention } = store
  const comparedMs = await comparedSince(store, definition)
  const firstMs = Math.max((await retention.firstHour(orgId)) ?? now, comparedMs ?? 0)
  const isWeek = firstMs <= now - weekMs - windowMs
  const backMs = isWeek ? weekMs : windowMs
  const filter = narrowed(definition, group)
  if (filter === null || (comparedMs !== null && now - 2 * windowMs < comparedMs)) return null

  async function countsOf(namedValues: Named[]): Promise<[FilteredCounts, FilteredCounts] | null> {
    const { filter: eventFilter, also } = storeFilter(namedValues.reduce(withValue, filter!))
    const count = (untilMs: number) =>
      events.filteredCounts({
        orgId,
        filter: eventFilter,
        also,
        edges: [untilMs - windowMs, untilMs],
        budgetMs,
        breakdowns: [...ofAgent, ...ofRequest].map((dimension) => ({
          by: dimension === 'verdict' ? 'vouched' : dimension,
        })),
      })
    const before = await count(now - backMs)
    const present = await count(now)
    return before.complete && present.complete ? [before, present] : null
  }

  const allCounts = await countsOf([])
  if (allCounts === null) return null
  const change = changeOf(allCounts)
  if (change.now === change.before) return null
  const first = strongest(candidates(allCounts), change, change)
  if (first === null) return null
  const explanation: Explanation = {
    comparedWith: isWeek ? 'week before' : 'window before',
    ...change,
    causes: [causeOf(first)],
  }
  const inside = await countsOf([first])
  if (inside === null) return explanation
  const otherCandidates = candidates(inside).filter(({ field }) => isAgent(field) !== isAgent(first.field))
  const second = strongest(otherCandidates, changeOf(inside), changeOf(inside))
  const isMost =
    second !== null &&
    Math.abs(second.now - second.before) >= secondShare * Math.abs(first.now - first.before)
  if (isMost) explanation.causes.push(causeOf(second))
  return explanation
}

const isAgent = (field: string): boolean => ofAgent.some((agentField) => agentField === field)

/** The filter of the rule with its group, and with the part that a share or an error count is about. */
function narrowed(
  { filter, of: partFilter, measure, groupBy }: MeasureDefinition,
  group: string,
): RuleFilter | null {
  const parts: RuleFilter[] = [filter]
  if (partFilter !== null) parts.push(partFilter)
  if (measure === 'errors') parts.push({ outcome: ['error'] })
  if (groupBy !== null) parts.push({ [groupBy]: [group] })
  const combinedFilter: RuleFilter = {}
  for (const part of parts) {
    for (const [name, values] of Object.entries(part)) {
      const earlierValues = combinedFilter[name]
      // A prefix of types holds the types that a part names.
      const shared =
        earlierValues === undefined || name === 'type'
          ? values
          : values.filter((value) => earlierValues.includes(value))
      if (shared.length === 0) return null
      combinedFilter[name] = shared
    }
  }
  return combinedFilter
}

function withValue(filter: RuleFilter, { field, value, pages }: Named): RuleFilter {
  return { ...filter, [field]: pages ?? [value] }
}

interface Change {
  before: number
  now: number
}

interface Candidate extends Change, Named {}

function changeOf([countsBefore, present]: [FilteredCounts, FilteredCounts]): Change {
  const total = ({ rows }: FilteredCounts) => rows.reduce((sum, { count }) => sum + count, 0)
  return { before: total(countsBefore), now: total(present) }
}

function candidates([countsBefore, present]: [FilteredCounts, FilteredCounts]): Candidate[] {
  return [...ofAgent, ...ofRequest].flatMap((field, index) => {
    const values = new Map<string, Candidate>()
    const add = (side: 'before' | 'now', counts: FilteredCounts) => {
      for (const { value, count } of counts.breakdowns[index] ?? []) {
        if (value === null || value === '') continue
        const candidate = values.get(value) ?? { field, value, before: 0, now: 0 }
        candidate[side] += count
        values.set(value, candidate)
      }
    }
    add('before', countsBefore)
    add('now', present)
    const fieldCandidates = [...values.values()]
    return field === 'page' ? [...fieldCandidates, ...prefixes(fieldCandidates)] : fieldCandidates
  })
}

/** Pages below the same first part of their path. */
function prefixes(pages: Candidate[]): Candidate[] {
  const byPrefix = Map.groupBy(pages, ({ value }) => /^\/[^/]+\//.exec(value)?.[0] ?? '')
  return [...byPrefix]
    .filter(
      ([prefix, pageCandidates]) =>
        prefix !== '' && pageCandidates.length > 1 && pageCandidates.length <= pagesOfPrefix,
    )
    .map(([prefix, pageCandidates]) => ({
      field: 'page',
      value: `${prefix}*`,
      pages: pageCandidates.map(({ value }) => value),
      before: pageCandidates.reduce((sum, { before: previousCount }) => sum + previousCount, 0),
      now: pageCandidates.reduce((sum, { now }) => sum + now, 0),
    }))
}

/**
 * The value with the largest share of the change, beyond its share of what was there before: a value that every event
 * has explains nothing.
 */
function strongest(
  candidateList: Candidate[],
  { before: previousCount, now }: Change,
  whole: Change,
): Candidate | null {
  const change = now - previousCount
  const score = (candidate: Candidate) => {
    const usual = whole.before === 0 ? 0 : candidate.before / whole.before
    return (candidate.now - candidate.before) / change - usual
  }
  let best: Candidate | null = null
  for (const candidate of candidateList) {
    if ((candidate.now - candidate.before) / change < leastShare || score(candidate) <= 0) continue
    if (best === null || score(candidate) > score(best) + 1e-9) best = candidate
  }
  return best
}

const causeOf = ({ field, value, before: previousCount, now }: Candidate): Cause => ({
  field,
  value,
  before: previousCount,
  now,
})

/** "82 % of the rise from the week before comes from GPTBot on /docs/*". */
export function explanationText({ before: previousCount, now, causes, comparedWith }: Explanation): string {
  const last = causes.at(-1)
  if (last === undefined) return ''
  const share = Math.min(1, (last.now - last.before) / (now - previousCount))
  const phrases = causes
    .toSorted((a, b) => Number(isAgent(b.field)) - Number(isAgent(a.field)))
    .map(({ field, value }, index) => phrase(field, value, index > 0))
  const direction = now > previousCount ? 'rise' : 'fall'
  return `${Math.round(share * 100)} % of the ${direction} from the ${comparedWith} comes from ${phrases.join(' ')}`
}

const charsMax = 60

function phrase(field: string, value: string, isSecond: boolean): string {
  const characters = [...value]
  const short = characters.length <= charsMax ? value : `${characters.slice(0, charsMax).join('')}…`
  if (field === 'page') return isSecond ? `on ${short}` : short
  if (field === 'name' || field === 'vendor') return short
  const label = pageFilterName(field)
  return isSecond ? `with ${label} ${short}` : `${label} ${short}`
}
