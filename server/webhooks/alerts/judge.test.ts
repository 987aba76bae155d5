/** What a rule makes of a measure: conditions, waits, and anomalies in ninety days against their own past. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  advance,
  baselines,
  interpolateBaseline,
  judge,
  median,
  replay,
  sliding,
  type AlertState,
  type Reading,
} from './judge.ts'
import type { Condition } from '../../../db/contract/alerts.ts'

const reading = (events: number, part = 0, value = 0): Reading => ({ events, part, value })
const rule = (condition: Condition, fields: object = {}) => ({
  measure: 'count' as const,
  condition,
  eventsMin: 0,
  noData: 'ok' as const,
  ...fields,
})
const options = { baseline: null, isKnown: true }
const minuteMs = 60_000

describe('conditions', () => {
  test('above and below a number', () => {
    const aboveRule = rule({ kind: 'above', value: 10 })
    expect([
      judge(aboveRule, reading(10), options).holds,
      judge(aboveRule, reading(11), options).holds,
    ]).toEqual([false, true])
    expect(judge(rule(aboveRule.condition, { eventsMin: 20 }), reading(11), options).holds).toBe(false)
    const belowRule = rule({ kind: 'below', value: 10 })
    expect([9, 10].map((n) => judge(belowRule, reading(n), options).holds)).toEqual([true, false])
    expect(judge(belowRule, reading(0), options).holds).toBe(true)
    expect(judge(belowRule, reading(0), { baseline: null, isKnown: false }).holds).toBe(false)
  })

  test('a share needs events, and as many as its minimum', () => {
    const share = rule({ kind: 'above', value: 0.5 }, { measure: 'share', eventsMin: 4 })
    expect(judge(share, reading(4, 3), options)).toMatchObject({ value: 0.75, holds: true })
    expect(judge(share, reading(3, 3), options).holds).toBe(false)
    expect(judge(share, reading(0), options)).toMatchObject({ value: null, holds: false })
    expect(judge({ ...share, noData: 'alert' }, reading(0), options)).toMatchObject({
      holds: true,
      isNoData: true,
    })
  })

  test('absence needs something that was there before', () => {
    const absence = rule({ kind: 'absence' })
    const never = { baseline: null, isKnown: false }
    expect([judge(absence, reading(0), options).holds, judge(absence, reading(0), never).holds]).toEqual([
      true,
      false,
    ])
    expect(judge(absence, reading(1), options).holds).toBe(false)
  })

  test('a change has a direction, and is measured in deviations', () => {
    const baseline = { expected: 100, deviation: 10, weeks: 4 }
    const holds = (direction: 'up' | 'down' | 'both', value: number, eventsMin = 20) => {
      const condition = { kind: 'change' as const, direction, deviations: 4, weeks: 4 }
      return judge(rule(condition, { eventsMin }), reading(value), { baseline, isKnown: true }).holds
    }
    expect([holds('up', 140), holds('up', 141), holds('up', 10)]).toEqual([false, true, false])
    expect([holds('down', 60), holds('down', 59), holds('down', 0), holds('both', 0)]).toEqual([
      false,
      true,
      true,
      true,
    ])
    expect(holds('both', 141, 1_000)).toBe(false)
  })
})

describe('alerts over time', () => {
  const waits = { forMinutes: 2, keepFiringMinutes: 3 }

  test('pending, firing, kept firing, resolved', () => {
    let alert: AlertState | null = null
    const steps = [1, 0, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0].map((holds, minute) => {
      const now = minute * minuteMs
      const next = advance(alert, holds === 1, now, waits)
      if (next.do === 'open') alert = { state: next.state, sinceMs: now, clearSinceMs: null }
      else if (next.do === 'fire') alert = { state: 'firing', sinceMs: now, clearSinceMs: null }
      else if (next.do === 'note') alert = { ...alert!, clearSinceMs: next.clearSinceMs }
      else if (next.do === 'resolve') alert = null
      return next.do === 'nothing' ? '' : next.do
    })
    expect(steps).toEqual([
      'open',
      'resolve',
      'open',
      '',
      'fire',
      'note',
      '',
      'note',
      'note',
      '',
      '',
      'resolve',
      '',
    ])
  })

  test('for any judgements, alerts alternate, never overlap, and fire only while the condition holds', () => {
    const inputs = fc.record({
      holds: fc.array(fc.boolean(), { maxLength: 60 }),
      forMinutes: fc.integer({ min: 0, max: 5 }),
      keepFiringMinutes: fc.integer({ min: 0, max: 5 }),
    })
    fc.assert(
      fc.property(inputs, ({ holds, ...waits }) => {
        const judgements = holds.map((isHolding, minute) => ({
          atMs: minute * minuteMs,
          judgement: { value: isHolding ? 5 : 0, baseline: null, holds: isHolding, isNoData: false },
        }))
        const alerts = replay(judgements, { ...waits, condition: { kind: 'above', value: 1 } }, minuteMs)
        for (const [index, { sinceMs, untilMs, value }] of alerts.entries()) {
          expect([holds[sinceMs / minuteMs], value]).toEqual([true, 5])
          if (untilMs === null) expect(index).toBe(alerts.length - 1)
          else expect(untilMs).toBeGreaterThan(sinceMs)
          const nextAlert = alerts[index + 1]
          if (nextAlert !== undefined) expect(nextAlert.sinceMs).toBeGreaterThan(untilMs!)
        }
        if (waits.forMinutes === 0 && waits.keepFiringMinutes === 0) {
          const runs = holds.filter((isHolding, minute) => isHolding && holds[minute - 1] !== true).length
          expect(alerts).toHaveLength(runs)
        }
      }),
    )
  })
})

test('medians, sums of windows, and baselines between two hours', () => {
  expect([median([]), median([3]), median([4, 1, 3]), median([4, 1, 3, 2])]).toEqual([0, 3, 3, 2.5])
  const sums = sliding([reading(1, 1), reading(2), null, reading(4), reading(5, 2)], 2)
  expect(sums).toEqual([null, reading(3, 1), null, null, reading(9, 2)])
  const baselineFor = (expected: number) => ({ expected, deviation: 2, weeks: 4 })
  expect(interpolateBaseline(baselineFor(10), baselineFor(20), 0.25)).toEqual(baselineFor(12.5))
  expect(interpolateBaseline(baselineFor(10), null, 0.25)).toEqual(baselineFor(10))
})

// ---------------------------------------------------------------- ninety days

/** Deterministic: mulberry32. */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

const historyHours = 28 * 24
const days = 90
const plantedCount = 50

interface Traffic {
  level: number // events per hour on an average weekday
  noise: number // the standard deviation of an hour, as a share of its level
  growth: number // over all days
}

/** Days and nights, weekends, growth, noise, and fifty anomalies of one to six hours. */
function synthetic(seed: number, { level, noise, growth }: Traffic) {
  const random = randomOf(seed)
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  const total = historyHours + days * 24
  const planted = new Map<number, number>() // hour -> anomaly
  const factors: number[] = []
  while (factors.length < plantedCount) {
    const start = historyHours + Math.floor(random() * (days * 24 - 12))
    const length = 1 + Math.floor(random() * 6)
    const hours = Array.from({ length }, (_, n) => start + n)
    // Apart from each other, so that each can be counted.
    if (Array.from({ length: length + 12 }, (_, n) => start - 6 + n).some((hour) => planted.has(hour)))
      continue
    for (const hour of hours) planted.set(hour, factors.length)
    factors.push(random() < 0.6 ? 2.5 + 3 * random() : 0.15 * random())
  }
  const values = Array.from({ length: total }, (_, hour) => {
    const ofDay = 1 + 0.6 * Math.sin(((hour % 24) / 24) * 2 * Math.PI - 1.8)
    const ofWeek = Math.floor(hour / 24) % 7 >= 5 ? 0.55 : 1
    const usual = level * ofDay * ofWeek * (1 + (growth * hour) / total)
    const anomaly = planted.get(hour)
    const mean = usual * (anomaly === undefined ? 1 : factors[anomaly]!)
    const spread = Math.sqrt(mean + (noise * mean) ** 2)
    return Math.max(0, Math.round(mean + spread * normal()))
  })
  return { values, planted }
}

/** How many of the anomalies a rule finds, and how many alerts it raises for none. */
function measureDetection(seed: number, traffic: Traffic): { recall: number; falsePerWeek: number } {
  const { values, planted } = synthetic(seed, traffic)
  const baselineAt = baselines('count', values, 4)
  const condition = { kind: 'change' as const, direction: 'both' as const, deviations: 4, weeks: 4 }
  const judgements = values.slice(historyHours).map((value, n) => {
    const hour = historyHours + n
    const context = { baseline: baselineAt(hour), isKnown: true }
    return {
      atMs: hour * 3_600_000,
      judgement: judge(rule(condition, { eventsMin: 20 }), reading(value), context),
    }
  })
  const alerts = replay(judgements, { forMinutes: 0, keepFiringMinutes: 0, condition }, 3_600_000)
  const hits = new Set<number>()
  let wrong = 0
  for (const { sinceMs, untilMs } of alerts) {
    const first = sinceMs / 3_600_000
    const end = (untilMs ?? Infinity) / 3_600_000
    const ofAlert = [...planted].filter(([hour]) => hour >= first && hour < end)
    if (ofAlert.length === 0) wrong++
    for (const [, anomaly] of ofAlert) hits.add(anomaly)
  }
  return { recall: hits.size / plantedCount, falsePerWeek: wrong / (days / 7) }
}

describe('ninety days with fifty anomalies', () => {
  const traffics: [name: string, traffic: Traffic][] = [
    ['busy', { level: 5_000, noise: 0.1, growth: 0.3 }],
    ['usual', { level: 400, noise: 0.12, growth: 0.2 }],
    ['small', { level: 200, noise: 0.08, growth: -0.2 }],
  ]
  test.each(traffics)(
    '%s traffic: at least 95 %% are found, with at most one false alarm a week',
    (_, traffic) => {
      for (let seed = 1; seed <= 8; seed++) {
        const { recall, falsePerWeek } = measureDetection(seed, traffic)
        expect({ seed, recall, isEnough: recall >= 0.95 }).toEqual({ seed, recall, isEnough: true })
        expect({ seed, falsePerWeek, isFew: falsePerWeek <= 1 }).toEqual({ seed, falsePerWeek, isFew: true })
      }
    },
  )
})
