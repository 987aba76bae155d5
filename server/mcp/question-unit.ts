/**
 * What a question about agents and pages counts without `type`: requests, or visits where no site has requests
 * (contract §19). A request and its own detection are both events, so counting events would count a page twice.
 */
import { rangeUnit } from '../counts/unit.ts'
import { typeLabel, unitTypes } from '../counts/unit-types.ts'
import type { Unit } from '../counts/shapes.ts'
import { readQuestion, textArg, type Args, type Asking, type Question } from './question.ts'

/** Fields of events that are neither requests nor visits. Questions about them count events of every type. */
const otherFields = ['tool', 'protocol', 'decision', 'ruleId', 'reason', 'sessionId', 'subject', 'q']

export interface Counted {
  args: Args // with the type of the unit, without `unit`
  unit: string // "requests"
  beside: Unit['beside']
}

/** What the arguments count. `by` is the field of `count`. */
export async function readCounted(asking: Asking, given: Args, by?: string): Promise<Counted> {
  const { unit: chosen, ...args } = given
  const types = args['type']
  if (Array.isArray(types)) return { args, unit: wordOf(types as string[]), beside: null }
  const isOther = [...otherFields, 'type'].some((name) => name === by || args[name] !== undefined)
  if (chosen === 'events' || isOther) return { args, unit: 'events', beside: null }
  const { filter } = readQuestion(asking, { siteId: args['siteId'], ...timesOf(args) }, true)
  if (await hasNoAgents(asking, filter)) return { args, unit: 'events', beside: null }
  const unit = await unitOf(asking, filter)
  return { args: { ...args, type: [unit.type] }, unit: unit.name, beside: unit.beside }
}

const timesOf = (args: Args): Args =>
  Object.fromEntries(
    ['last', 'since', 'until'].flatMap((name) => {
      const text = textArg(args, name)
      return text === undefined ? [] : [[name, text]]
    }),
  )

/** Without requests and visits no event is counted twice, so that what else happened is the answer. */
async function hasNoAgents({ store, orgId }: Asking, filter: Question['filter']): Promise<boolean> {
  const { sinceMs, untilMs = null, siteIds } = filter
  const types = Object.values(unitTypes)
  const sites = siteIds && { siteIds }
  const { total } = await store.events.metrics({ orgId, sinceMs, untilMs, types, ...sites, rowsMax: 0 })
  return total === 0
}

const hourMs = 3_600_000

/** The unit of the sites and whole hours of a filter. */
export function unitOf({ store, orgId, clock }: Asking, filter: Question['filter']): Promise<Unit> {
  const { sinceMs, siteIds } = filter
  const endMs = filter.untilMs ?? (Math.floor(clock.now() / hourMs) + 2) * hourMs
  const untilMs = Math.max(endMs, sinceMs + hourMs)
  const noPeriod = { sinceMs, untilMs: sinceMs }
  return rangeUnit(store.events, orgId, { sinceMs, untilMs, before: noPeriod, ...(siteIds && { siteIds }) })
}

/** "requests" for one known type; "events" for several types, prefixes and all others. */
function wordOf([type = '', ...more]: string[]): string {
  return more.length > 0 ? 'events' : typeLabel(type).toLowerCase()
}
