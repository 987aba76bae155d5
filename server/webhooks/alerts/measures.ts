/** Measures the rules that compare a measure: the present window of each group, and its hours of the past. */
import type { MeasureDefinition, Rule } from '../../../db/contract/alerts.ts'
import type { Series, Store } from '../../../db/contract/store.ts'
import { isoTime } from '../../clock.ts'
import type { Log } from '../../log.ts'
import { judgedSince } from '../../evidence/judged-since.ts'
import { isJudged, seriesOf } from './definition.ts'
import {
  baselines,
  interpolateBaseline,
  judge,
  sliding,
  valueOf,
  type Baseline,
  type Judgement,
  type Reading,
} from './judge.ts'
import { hourMs, minuteMs } from '../../../db/contract/units.ts'

interface MeasureServices {
  store: Pick<Store, 'health'> & {
    events: Pick<Store['events'], 'series'>
    retention: Pick<Store['retention'], 'firstHour'>
  }
  log: Log
}

/** One group of a rule in its present window. */
export interface Measured {
  group: string // '' without groups
  events: number
  judgement: Judgement
}

export interface Measures {
  /** Null while the rule rests, or when its window has too many events to be read in time. */
  measure(rule: Rule & { definition: MeasureDefinition }, now: number): Promise<Measured[] | null>
  /** Begins a run over these rules, and forgets all others. */
  begin(ruleIds: ReadonlySet<string>): void
  /** False when this run has used up its time: what is left comes in the next one. */
  hasTime(): boolean
}

const budgetMs = 2_000
/** A group that was seen within this time before the window is known. */
const knownMs = 7 * 24 * hourMs
/** Of one run over all rules. The dispatcher runs it each minute and must not be late. */
const runMs = 20_000
/** A rule uses at most a twentieth of a reader, whatever it costs. */
const restFactor = 20

interface Past {
  key: string
  series: Series
  first: number // hour
  firstHour: number // of the organization
}

export function makeMeasures({ store, log }: MeasureServices): Measures {
  const pasts = new Map<string, Past>()
  const restUntil = new Map<string, number>() // milliseconds since the start, because clocks are set back
  const slow = new Set<string>()
  const isUnjudged = unjudgedRules({ store, log })
  let startedMs = performance.now()
  const hasTime = () => performance.now() - startedMs < runMs

  /** The hours before the present one, read once per hour. */
  async function pastOf(rule: Rule & { definition: MeasureDefinition }, hour: number): Promise<Past> {
    const { definition, orgId, id } = rule
    const key = `${hour} ${JSON.stringify(definition)}`
    const cachedPast = pasts.get(id)
    if (cachedPast?.key === key) return cachedPast
    const first = hour - hoursBefore(definition)
    const edges = hourEdges(first, hour)
    const series = await store.events.series({ ...seriesOf(orgId, definition), edges, budgetMs })
    const firstMs = await store.retention.firstHour(orgId)
    const comparedMs = await comparedSince(store, definition)
    const firstHour = Math.max(
      Math.floor((firstMs ?? hour * hourMs) / hourMs),
      Math.ceil((comparedMs ?? 0) / hourMs),
    )
    const past = { key, series, first, firstHour }
    pasts.set(id, past)
    return past
  }

  async function readWindow(
    { id, orgId, definition }: Rule & { definition: MeasureDefinition },
    now: number,
  ) {
    const sinceMs = now - definition.windowMinutes * minuteMs
    const edges = needsKnown(definition) ? [sinceMs - knownMs, sinceMs, now] : [sinceMs, now]
    const series = await store.events.series({ ...seriesOf(orgId, definition), edges, budgetMs })
    const isComplete = series.sinceMs <= sinceMs
    if (!isComplete && !slow.has(id))
      log.warn('alert_rule_not_evaluated', { ruleId: id, reason: 'too many events' })
    if (isComplete) slow.delete(id)
    else slow.add(id)
    return isComplete ? series : null
  }

  return {
    async measure(rule, now) {
      const { definition, id } = rule
      if (await isUnjudged(rule, now)) return null
      const beganMs = performance.now()
      if ((restUntil.get(id) ?? -Infinity) > beganMs || !hasTime()) return null
      const window = await readWindow(rule, now)
      const past =
        definition.condition.kind === 'change' ? await pastOf(rule, Math.floor(now / hourMs)) : null
      const endedMs = performance.now()
      const tookMs = endedMs - beganMs
      // A rule that is measured within a run of the dispatcher is not late.
      if (tookMs * restFactor > minuteMs) restUntil.set(id, endedMs + tookMs * restFactor)
      return window === null ? null : await judged(definition, window, past, now)
    },
    hasTime,
    begin(ruleIds) {
      startedMs = performance.now()
      for (const ruleMap of [pasts, restUntil])
        for (const id of ruleMap.keys()) if (!ruleIds.has(id)) ruleMap.delete(id)
    },
  }
}

/**
 * The time before which the values of a rule are not comparable, because judges were not recorded; null: all are. The
 * sender's verdicts counted as verdicts then.
 */
export async function comparedSince(
  store: Pick<Store, 'health'>,
  definition: MeasureDefinition,
): Promise<number | null> {
  return isJudged(definition) ? judgedSince(store) : null
}

/** Whether the window of a rule begins before judges were recorded, which the log says once. */
function unjudgedRules({ store, log }: { store: Pick<Store, 'health'>; log: Log }) {
  const unjudged = new Set<string>()
  return async ({ id, definition }: Rule & { definition: MeasureDefinition }, now: number) => {
    const sinceMs = await comparedSince(store, definition)
    if (sinceMs === null || now - definition.windowMinutes * minuteMs >= sinceMs) return false
    const reason = `judge not recorded before ${isoTime(sinceMs)}`
    if (!unjudged.has(id)) log.warn('alert_rule_not_evaluated', { ruleId: id, reason })
    unjudged.add(id)
    return true
  }
}

function needsKnown({ condition: { kind }, noData }: MeasureDefinition): boolean {
  return kind === 'absence' || kind === 'below' || noData === 'alert'
}

/** Twice the weeks of the baseline: the older half shows which hours of the newer one were unusual. */
export function hoursBefore({ condition, windowMinutes }: MeasureDefinition): number {
  const weeks = condition.kind === 'change' ? condition.weeks : 0
  return weeks * 2 * 168 + windowMinutes / 60
}

export function hourEdges(first: number, end: number): number[] {
  return Array.from({ length: end - first + 1 }, (_, n) => (first + n) * hourMs)
}

/** The groups of both, by name; a group with too many values to be stored by name is not evaluated. */
async function judged(
  definition: MeasureDefinition,
  window: Series,
  past: Past | null,
  now: number,
): Promise<Measured[]> {
  const { groupsMax } = definition
  const groups = new Set([...window.groups, ...(past?.series.groups ?? [])].map(({ group }) => group))
  const measurements: Measured[] = []
  for (const group of [...groups].slice(0, groupsMax)) {
    if (group === null) continue
    const windowGroup = window.groups.find((seriesGroup) => seriesGroup.group === group)
    const step = (windowGroup?.events.length ?? 1) - 1
    const reading = readingAt(windowGroup, step)
    const isKnown = !needsKnown(definition) || (windowGroup?.events[0] ?? 0) > 0
    const baseline = past === null ? null : presentBaseline(definition, past, group, now)
    measurements.push({
      group,
      events: reading.events,
      judgement: judge(definition, reading, { baseline, isKnown }),
    })
    if (past !== null) await Bun.sleep(0) // a baseline of eight weeks takes milliseconds
  }
  return measurements
}

function readingAt(group: Series['groups'][number] | undefined, step: number): Reading {
  return { events: group?.events[step] ?? 0, part: group?.part[step] ?? 0, value: group?.values[step] ?? 0 }
}

/** Between the window that ended with the last whole hour, and the one that ends with the next. */
function presentBaseline(
  definition: MeasureDefinition,
  past: Past,
  group: string,
  now: number,
): Baseline | null {
  const { series, first, firstHour } = past
  const values = hourlyValues(definition, series, group, { first, firstHour })
  const baselineAt = baselinesOf(definition, values)
  const share = (now % hourMs) / hourMs
  return interpolateBaseline(baselineAt(values.length - 1), baselineAt(values.length), share)
}

export function baselinesOf(
  { measure, condition }: MeasureDefinition,
  values: (number | null)[],
): (hourIndex: number) => Baseline | null {
  return condition.kind === 'change' ? baselines(measure, values, condition.weeks) : () => null
}

/** The value of the window that ends with each hour of a series of hours; null before the first event. */
function hourlyValues(
  definition: MeasureDefinition,
  series: Series,
  group: string,
  { first, firstHour }: { first: number; firstHour: number },
): (number | null)[] {
  return hourlyReadings(definition, series, group, { first, firstHour }).map((reading) =>
    reading === null ? null : valueOf(definition.measure, reading),
  )
}

export function hourlyReadings(
  { windowMinutes }: MeasureDefinition,
  series: Series,
  group: string,
  { first, firstHour }: { first: number; firstHour: number },
): (Reading | null)[] {
  const groupSeries = series.groups.find((seriesGroup) => seriesGroup.group === group)
  const steps = series.groups[0]?.events.length ?? 0
  const readings = Array.from({ length: steps }, (_, step) => {
    const hour = first + step
    const isComplete = hour >= firstHour && hour * hourMs >= series.sinceMs
    return isComplete ? readingAt(groupSeries, step) : null
  })
  return sliding(readings, Math.max(1, windowMinutes / 60))
}
