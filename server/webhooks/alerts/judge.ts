/** Judges the values of a measure, alone and over time. Pure: the evaluation of rules and the back-test share it. */
import type { Condition, Measure, MeasureDefinition } from '../../../db/contract/alerts.ts'
import { minuteMs } from '../../../db/contract/units.ts'

/** What a window has measured. */
export interface Reading {
  events: number
  part: number // of events; 0 for measures without a part
  value: number // sessions, subjects, p95 or tokens; 0 for other measures
}

/** The usual value of a window, and how far it usually lies from it. */
export interface Baseline {
  expected: number
  deviation: number
  weeks: number // of the past that it was computed from
}

export interface Judgement {
  value: number | null // null: there is no data to compute it from
  baseline: Baseline | null // of changes, as soon as there is enough of the past
  holds: boolean // the condition
  isNoData: boolean // it holds because there is no data
}

/** Null without data: a share or a duration needs events. */
export function valueOf(measure: Measure, { events, part, value }: Reading): number | null {
  if (measure === 'count') return events
  if (measure === 'errors') return part
  if (measure === 'share') return events === 0 ? null : part / events
  return measure === 'p95' && events === 0 ? null : value
}

type Judged = Pick<MeasureDefinition, 'measure' | 'condition' | 'eventsMin' | 'noData'>

/**
 * `isKnown`: events matched the filter before the window. A rule about the absence of events, or about few of them,
 * must not fire for something that never happened.
 */
export function judge(
  { measure, condition, eventsMin, noData }: Judged,
  reading: Reading,
  { baseline, isKnown }: { baseline: Baseline | null; isKnown: boolean },
): Judgement {
  const value = valueOf(measure, reading)
  const createJudgement = (holds: boolean, isNoData = false): Judgement => ({
    value,
    baseline,
    holds,
    isNoData,
  })
  if (reading.events === 0 && isKnown && noData === 'alert') return createJudgement(true, true)
  if (condition.kind === 'absence') return createJudgement(reading.events === 0 && isKnown)
  if (value === null) return createJudgement(false)
  if (condition.kind === 'above')
    return createJudgement(value > condition.value && reading.events >= eventsMin)
  if (condition.kind === 'below') {
    const isEnough = reading.events > 0 ? reading.events >= eventsMin : isKnown
    return createJudgement(value < condition.value && isEnough)
  }
  const isChange = isChanged(condition as ChangeCondition, eventsMin, value, reading, measure, baseline)
  return createJudgement(isChange)
}

type ChangeCondition = Extract<Condition, { kind: 'change' }>

function isChanged(
  { direction, deviations }: ChangeCondition,
  eventsMin: number,
  value: number,
  { events }: Reading,
  measure: Measure,
  baseline: Baseline | null,
): boolean {
  if (baseline === null) return false
  const { expected, deviation } = baseline
  // A count may fall to nothing; a share of few events says little.
  const isCount = measure !== 'share' && measure !== 'p95'
  if (Math.max(events, isCount ? expected : 0) < eventsMin) return false
  const distance = (value - expected) / deviation
  if (direction === 'up') return distance > deviations
  return direction === 'down' ? -distance > deviations : Math.abs(distance) > deviations
}

// ---------------------------------------------------------------- the past

const hoursPerWeek = 168
/**
 * Of n normally distributed values, from 2 on: their standard deviation by the median distance from their own median,
 * and the standard deviation of the distance between their median and one more value. By simulation.
 */
const perMedianDistance = [2.1, 3.17, 2.058, 2.027, 1.9, 1.814, 1.774]
const ofNext = [1.223, 1.205, 1.139, 1.135, 1.102, 1.1, 1.081]

/** Values further from their baseline were no usual ones, so later baselines leave them out. */
const unusual = 4

/**
 * Returns the baseline of the window at an hour of `past`, which has a value per hour, or null for an hour without one.
 * Expected is the median of the same hour in the weeks before. The deviation is the median of how far the values of the
 * same hour of all days, and up to two hours earlier and later, were from their own median: four values of one hour say
 * too little about noise. Null with less than two weeks.
 */
export function baselines(
  measure: Measure,
  past: readonly (number | null)[],
  weeks: number,
): (hourIndex: number) => Baseline | null {
  const usual = [...past]
  const slots = new Map<number, Slot>()
  const slotAt = (hourIndex: number): Slot => {
    let slot = slots.get(hourIndex)
    if (slot === undefined)
      slots.set(hourIndex, (slot = slotOf(measure, sameHour(past, usual, hourIndex, weeks))))
    return slot
  }

  /** Of the same hour of seven days. */
  const noises = new Map<number, number>()
  const noiseAt = (hourIndex: number): number => {
    let noise = noises.get(hourIndex)
    if (noise === undefined) {
      const days = [0, 24, 48, 72, 96, 120, 144]
      noises.set(hourIndex, (noise = median(days.flatMap((hours) => slotAt(hourIndex - hours).distances))))
    }
    return noise
  }

  function baselineAt(hourIndex: number): Baseline | null {
    const { values, middle } = slotAt(hourIndex)
    if (values < 2) return null
    const around = [-2, -1, 0, 1, 2].map((shift) => noiseAt(hourIndex + shift))
    const usualNoise = around.reduce((sum, hourNoise) => sum + hourNoise, 0) / around.length
    const noise = ofNext[values - 2]! * usualNoise * noiseUnit(measure, middle)
    return { expected: middle, deviation: Math.max(noise, leastDeviation(measure, middle)), weeks: values }
  }

  for (const [hourIndex, value] of past.entries()) {
    const baseline = value === null ? null : baselineAt(hourIndex)
    if (baseline !== null && Math.abs(value! - baseline.expected) > unusual * baseline.deviation)
      usual[hourIndex] = null
  }
  return baselineAt
}

/** One hour of the week. */
interface Slot {
  values: number
  middle: number // their median
  distances: number[] // of the values from it, as standard deviations in units of noise; empty with less than two
}

function slotOf(measure: Measure, values: number[]): Slot {
  const middle = median(values)
  const unit = noiseUnit(measure, middle)
  const scale = (perMedianDistance[values.length - 2] ?? 0) / unit
  const distances = values.length < 2 ? [] : values.map((value) => Math.abs(value - middle) * scale)
  return { values: values.length, middle, distances }
}

/**
 * Values one week, two weeks and so on before hour `hourIndex`. After a lasting change most are unusual, and then all
 * count.
 */
function sameHour(
  past: readonly (number | null)[],
  usual: readonly (number | null)[],
  hourIndex: number,
  weeks: number,
): number[] {
  const allValues: number[] = []
  const usualValues: number[] = []
  for (let week = 1; week <= weeks; week++) {
    const hour = hourIndex - week * hoursPerWeek
    const value = past[hour]
    if (value === null || value === undefined) continue
    allValues.push(value)
    if (usual[hour] !== null) usualValues.push(value)
  }
  return usualValues.length * 2 > allValues.length || usualValues.length >= 2 ? usualValues : allValues
}

/** Noise grows with the root of a count. */
function noiseUnit(measure: Measure, level: number): number {
  if (measure === 'share') return Math.sqrt(Math.max(level * (1 - level), 0.01))
  return measure === 'p95' ? Math.max(level, 1) : Math.sqrt(level + 1)
}

/** However steady the past was, a difference below this is noise. */
function leastDeviation(measure: Measure, level: number): number {
  if (measure === 'share') return 0.01
  return measure === 'p95' ? Math.max(level * 0.05, 0.1) : Math.max(1, level * 0.05, Math.sqrt(level))
}

/** The same between two whole hours: `share` of the way from one to the next. */
export function interpolateBaseline(a: Baseline | null, b: Baseline | null, share: number): Baseline | null {
  if (a === null || b === null) return share < 0.5 ? a : b
  const mix = (x: number, y: number) => x * (1 - share) + y * share
  return {
    expected: mix(a.expected, b.expected),
    deviation: mix(a.deviation, b.deviation),
    weeks: Math.min(a.weeks, b.weeks),
  }
}

export function median(values: readonly number[]): number {
  if (values.length === 0) return 0
  const sorted = Float64Array.from(values).sort()
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** The sum of the last `hours` readings at each hour; null until there are as many. */
export function sliding(readings: readonly (Reading | null)[], hours: number): (Reading | null)[] {
  if (hours === 1) return [...readings]
  return readings.map((_, index) => {
    if (index + 1 < hours) return null
    const sum: Reading = { events: 0, part: 0, value: 0 }
    for (let back = 0; back < hours; back++) {
      const reading = readings[index - back]
      if (reading === null || reading === undefined) return null
      sum.events += reading.events
      sum.part += reading.part
      sum.value += reading.value
    }
    return sum
  })
}

// ---------------------------------------------------------------- alerts over time

/** An alert between two evaluations. */
export interface AlertState {
  state: 'pending' | 'firing'
  sinceMs: number // when the condition began to hold, or the alert fired
  clearSinceMs: number | null // the condition no longer holds
}

type Next =
  | { do: 'nothing' }
  | { do: 'open'; state: 'pending' | 'firing' }
  | { do: 'fire' | 'resolve' }
  | { do: 'note'; clearSinceMs: number | null }

type Waits = Pick<MeasureDefinition, 'forMinutes' | 'keepFiringMinutes'>

/** What follows from one evaluation. `null`: there is no alert. */
export function advance(
  alert: AlertState | null,
  holds: boolean,
  now: number,
  { forMinutes, keepFiringMinutes }: Waits,
): Next {
  if (alert === null) {
    if (!holds) return { do: 'nothing' }
    return { do: 'open', state: forMinutes === 0 ? 'firing' : 'pending' }
  }
  if (alert.state === 'pending') {
    if (!holds) return { do: 'resolve' }
    return now - alert.sinceMs >= forMinutes * minuteMs ? { do: 'fire' } : { do: 'nothing' }
  }
  if (holds) return alert.clearSinceMs === null ? { do: 'nothing' } : { do: 'note', clearSinceMs: null }
  if (keepFiringMinutes === 0) return { do: 'resolve' }
  if (alert.clearSinceMs === null) return { do: 'note', clearSinceMs: now }
  return now - alert.clearSinceMs >= keepFiringMinutes * minuteMs ? { do: 'resolve' } : { do: 'nothing' }
}

/** An alert that would have fired. */
export interface PastAlert {
  sinceMs: number
  untilMs: number | null // null: it would still fire
  value: number | null // the one furthest from what the condition allows
  expected: number | null
  isNoData: boolean
}

/** The alerts of a series of judgements, each of the window that ends at its time. */
export function replay(
  judgements: readonly { atMs: number; judgement: Judgement }[],
  { forMinutes, keepFiringMinutes, condition }: Waits & Pick<MeasureDefinition, 'condition'>,
  stepMs: number,
): PastAlert[] {
  const alerts: PastAlert[] = []
  let open = null as (AlertState & { alert: PastAlert }) | null
  // A condition that holds at one step is taken to have held during the step.
  const waits = { forMinutes: Math.max(0, forMinutes - stepMs / minuteMs), keepFiringMinutes }
  for (const { atMs, judgement } of judgements) {
    const next: Next = advance(open, judgement.holds, atMs, waits)
    if (next.do === 'open') {
      const { value, baseline, isNoData } = judgement
      const alert = { sinceMs: atMs, untilMs: null, value, expected: baseline?.expected ?? null, isNoData }
      open = { state: next.state, sinceMs: atMs, clearSinceMs: null, alert }
      if (next.state === 'firing') alerts.push(alert)
    } else if (open !== null && next.do === 'fire') {
      open = { ...open, state: 'firing', sinceMs: atMs }
      open.alert.sinceMs = atMs
      alerts.push(open.alert)
    } else if (open !== null && next.do === 'note') open.clearSinceMs = next.clearSinceMs
    else if (open !== null && next.do === 'resolve') {
      open.alert.untilMs = atMs
      open = null
    }
    if (open !== null && isFurther(condition, judgement, open.alert)) {
      open.alert.value = judgement.value
      open.alert.expected = judgement.baseline?.expected ?? null
    }
  }
  return alerts
}

function isFurther({ kind }: Condition, { value, baseline, holds }: Judgement, alert: PastAlert): boolean {
  if (!holds || value === null) return false
  if (alert.value === null) return true
  if (kind === 'above') return value > alert.value
  if (kind !== 'change') return value < alert.value
  const distance = (observedValue: number, expected: number | null) =>
    Math.abs(observedValue - (expected ?? 0))
  return distance(value, baseline?.expected ?? null) > distance(alert.value, alert.expected)
}
