/** When a rule that is costly to measure is evaluated again. */
import { expect, spyOn, test } from 'bun:test'
import type { MeasureDefinition, Rule } from '../../../db/contract/alerts.ts'
import { startLog } from '../../log.ts'
import { makeMeasures } from './measures.ts'

const definition: MeasureDefinition = {
  filter: {},
  measure: 'count',
  of: null,
  condition: { kind: 'above', value: 1 },
  windowMinutes: 60,
  forMinutes: 0,
  keepFiringMinutes: 0,
  noData: 'ok',
  eventsMin: 0,
  groupBy: null,
  groupsMax: 20,
  notifyPending: false,
}
const rule: Rule & { definition: MeasureDefinition } = {
  id: 'rul_1',
  orgId: 'org_1',
  endpointId: 'ep_1',
  kind: 'measure',
  name: 'r',
  definition,
  threshold: null,
  minutes: null,
  eventsMin: null,
  createdAtMs: 0,
  fromFile: false,
  silencedUntilMs: null,
}
const dayMs = 24 * 3_600_000

test('a rule about verdicts is not evaluated while its window begins before judges were recorded', async () => {
  const upgradeMs = 400 * dayMs
  const read: number[][] = []
  const series = async ({ edges }: { edges: number[] }) => {
    read.push(edges)
    return { groups: [{ group: '', events: [5], part: [], values: [] }], sinceMs: edges[0]!, rollups: true }
  }
  const measures = makeMeasures({
    store: {
      events: { series },
      retention: { firstHour: () => Promise.resolve(0) },
      health: () =>
        Promise.resolve({
          schema: 31,
          newestSchema: 31,
          isNewer: false,
          engine: '',
          bytes: 0,
          logBytes: null,
          judgedSinceMs: upgradeMs,
        }),
    },
    log: startLog({ level: 'error', clock: { now: () => 0 } }),
  })
  const judged = { ...rule, definition: { ...definition, filter: { verdict: ['verified'] } } }
  measures.begin(new Set([rule.id]))
  for (const afterMs of [-dayMs, 0, 59 * 60_000])
    expect(await measures.measure(judged, upgradeMs + afterMs)).toBeNull()
  expect(read).toEqual([])
  expect(await measures.measure(judged, upgradeMs + 60 * 60_000)).toMatchObject([{ events: 5 }])
  // Other rules compare across the upgrade.
  expect(await measures.measure(rule, upgradeMs + 1)).toMatchObject([{ events: 5 }])
})

test('a costly rule rests twenty times as long as it took, also when the clock is set back or forward', async () => {
  let elapsedMs = 0
  using _ = spyOn(performance, 'now').mockImplementation(() => elapsedMs)
  const series = async ({ edges }: { edges: number[] }) => {
    elapsedMs += 4_000
    return { groups: [{ group: '', events: [5], part: [], values: [] }], sinceMs: edges[0]!, rollups: true }
  }
  const measures = makeMeasures({
    store: {
      events: { series },
      retention: { firstHour: () => Promise.resolve(0) },
      health: () => Promise.reject(new Error('not about verdicts')),
    },
    log: startLog({ level: 'error', clock: { now: () => 0 } }),
  })
  const holds = async (now: number): Promise<boolean | null> => {
    measures.begin(new Set([rule.id]))
    return (await measures.measure(rule, now))?.[0]?.judgement.holds ?? null
  }
  const now = 400 * dayMs
  expect(await holds(now)).toBe(true)
  for (const atMs of [now, now - dayMs, now + dayMs]) expect(await holds(atMs)).toBeNull()
  elapsedMs += 80_000
  expect(await holds(now - dayMs)).toBe(true)
})
