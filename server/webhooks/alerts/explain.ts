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

  async function countsOf(more: Named[]): Promise<[FilteredCounts, FilteredCounts] | null> {
    const { filter: own, also } = storeFilter(more.reduce(withValue, filter!))
    const count = (untilMs: number) =>
      events.filteredCounts({
        orgId,
        filter: own,
        also,
        edges: [untilMs - windowMs, untilMs],
        budgetMs,
        breakdowns: [...ofAgent, ...ofRequest].map((by) => ({ by: by === 'verdict' ? 'vouched' : by })),
      })
    const before = await count(now - backMs)
    const present = await count(now)
    return before.complete && present.complete ? [before, present] : null
  }

  const all = await countsOf([])
  if (all === null) return null
  const change = changeOf(all)
  if (change.now === change.before) return null
  const first = strongest(candidates(all), change, change)
  if (first === null) return null
  const found: Explanation = {
    comparedWith: isWeek ? 'week before' : 'window before',
    ...change,
    causes: [causeOf(first)],
  }
  const inside = await countsOf([first])
  if (inside === null) return found
  const others = candidates(inside).filter(({ field }) => isAgent(field) !== isAgent(first.field))
  const second = strongest(others, changeOf(inside), changeOf(inside))
  const isMost =
    second !== null &&
    Math.abs(second.now - second.before) >= secondShare * Math.abs(first.now - first.before)
  if (isMost) found.causes.push(causeOf(second))
  return found
}

const isAgent = (field: string): boolean => ofAgent.some((one) => one === field)

/** The filter of the rule with its group, and with the part that a share or an error count is about. */
function narrowed({ filter, of, measure, groupBy }: MeasureDefinition, group: string): RuleFilter | null {
  const parts: RuleFilter[] = [filter]
  if (of !== null) parts.push(of)
  if (measure === 'errors') parts.push({ outcome: ['error'] })
  if (groupBy !== null) parts.push({ [groupBy]: [group] })
  const all: RuleFilter = {}
  for (const part of parts) {
    for (const [name, values] of Object.entries(part)) {
      const known = all[name]
      // A prefix of types holds the types that a part names.
      const shared =
        known === undefined || name === 'type' ? values : values.filter((one) => known.includes(one))
      if (shared.length === 0) return null
      all[name] = shared
    }
  }
  return all
}

function withValue(filter: RuleFilter, { field, value, pages }: Named): RuleFilter {
  return { ...filter, [field]: pages ?? [value] }
}

interface Change {
  before: number
  now: number
}

interface Candidate extends Change, Named {}

function changeOf([before, present]: [FilteredCounts, FilteredCounts]): Change {
  const total = ({ rows }: FilteredCounts) => rows.reduce((sum, { count }) => sum + count, 0)
  return { before: total(before), now: total(present) }
}

function candidates([before, present]: [FilteredCounts, FilteredCounts]): Candidate[] {
  return [...ofAgent, ...ofRequest].flatMap((field, index) => {
    const values = new Map<string, Candidate>()
    const add = (side: 'before' | 'now', counts: FilteredCounts) => {
      for (const { value, count } of counts.breakdowns[index] ?? []) {
        if (value === null || value === '') continue
        const known = values.get(value) ?? { field, value, before: 0, now: 0 }
        known[side] += count
        values.set(value, known)
      }
    }
    add('before', before)
    add('now', present)
    const own = [...values.values()]
    return field === 'page' ? [...own, ...prefixes(own)] : own
  })
}

/** Pages below the same first part of their path. */
function prefixes(pages: Candidate[]): Candidate[] {
  const byPrefix = Map.groupBy(pages, ({ value }) => /^\/[^/]+\//.exec(value)?.[0] ?? '')
  return [...byPrefix]
    .filter(([prefix, own]) => prefix !== '' && own.length > 1 && own.length <= pagesOfPrefix)
    .map(([prefix, own]) => ({
      field: 'page',
      value: `${prefix}*`,
      pages: own.map(({ value }) => value),
      before: own.reduce((sum, { before }) => sum + before, 0),
      now: own.reduce((sum, { now }) => sum + now, 0),
    }))
}

/**
 * The value with the largest share of the change, beyond its share of what was there before: a value that every event
 * has explains nothing.
 */
function strongest(all: Candidate[], { before, now }: Change, whole: Change): Candidate | null {
  const change = now - before
  const score = (one: Candidate) => {
    const usual = whole.before === 0 ? 0 : one.before / whole.before
    return (one.now - one.before) / change - usual
  }
  let best: Candidate | null = null
  for (const one of all) {
    if ((one.now - one.before) / change < leastShare || score(one) <= 0) continue
    if (best === null || score(one) > score(best) + 1e-9) best = one
  }
  return best
}

const causeOf = ({ field, value, before, now }: Candidate): Cause => ({ field, value, before, now })

/** "82 % of the rise from the week before comes from GPTBot on /docs/*". */
export function explanationText({ before, now, causes, comparedWith }: Explanation): string {
  const last = causes.at(-1)
  if (last === undefined) return ''
  const share = Math.min(1, (last.now - last.before) / (now - before))
  const named = causes
    .toSorted((a, b) => Number(isAgent(b.field)) - Number(isAgent(a.field)))
    .map(({ field, value }, index) => phrase(field, value, index > 0))
  const what = now > before ? 'rise' : 'fall'
  return `${Math.round(share * 100)} % of the ${what} from the ${comparedWith} comes from ${named.join(' ')}`
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
