/** Evaluates one rule that compares a measure: opens, fires and resolves the alert of each of its groups. */
import { explain, explanationText } from './explain.ts'
import { fireIncident, isSilenced, openIncident, resolveIncident, type Evaluated } from './incidents.ts'
import { advance } from './judge.ts'
import type { Measured, Measures } from './measures.ts'
import type { Store } from '../../../db/contract/store.ts'
import type { Log } from '../../log.ts'
import type { Incident, MeasureDefinition, Rule } from '../../../db/contract/alerts.ts'

interface EvaluateServices {
  store: Pick<Store, 'webhooks' | 'events' | 'retention' | 'health'>
  log: Log
  publicUrl: string | null
}

type MeasureRule = Rule & { definition: MeasureDefinition }

export async function evaluateMeasure(
  services: EvaluateServices,
  measures: Measures,
  evaluated: Evaluated & { rule: MeasureRule },
): Promise<void> {
  const { rule, open, now } = evaluated
  const measurements = await measures.measure(rule, now)
  if (measurements === null) return
  const byGroup = new Map(measurements.map((measurement) => [measurement.group, measurement]))
  for (const measured of measurements) {
    const incident = open.find(({ subject }) => subject === measured.group) ?? null
    await step(services, evaluated, incident, { measured, hasTime: measures.hasTime() })
  }
  for (const incident of open)
    if (!byGroup.has(incident.subject))
      await step(services, evaluated, incident, { measured: null, hasTime: false })
}

/** `measured` null: the group is no longer among those that are evaluated. */
async function step(
  services: EvaluateServices,
  evaluated: Evaluated & { rule: MeasureRule },
  incident: Incident | null,
  { measured, hasTime }: { measured: Measured | null; hasTime: boolean },
): Promise<void> {
  const { rule, now } = evaluated
  const { definition } = rule
  const silenced = isSilenced(rule, now)
  const holds = measured?.judgement.holds === true && !(silenced && incident?.state !== 'firing')
  const alert = incident && { ...incident, sinceMs: incident.openedAtMs }
  const next = advance(alert, holds, now, definition)
  if (next.do === 'open' && measured !== null) {
    const { state } = next
    const data = await dataOf(services, rule, measured, {
      now,
      explained: state === 'firing' && hasTime,
    })
    await openIncident(services, evaluated, { subject: measured.group, state, data, once: false })
  } else if (incident !== null && next.do === 'fire' && measured !== null) {
    const data = await dataOf(services, rule, measured, { now, explained: hasTime })
    await fireIncident(services, evaluated, incident, data)
  } else if (incident !== null && next.do === 'resolve') await resolveIncident(services, evaluated, incident)
  else if (incident !== null && next.do === 'note')
    await services.store.webhooks.noteIncident({
      id: incident.id,
      clearSinceMs: next.clearSinceMs,
      lease: evaluated.lease,
    })
}

/** Exact numbers for receivers, and what `incidentSentence` needs. */
async function dataOf(
  { store, log }: EvaluateServices,
  { orgId, name, definition, id }: MeasureRule,
  { group, events, judgement }: Measured,
  { now, explained }: { now: number; explained: boolean },
): Promise<Incident['data']> {
  const { measure, condition, windowMinutes, groupBy, filter } = definition
  const { value, baseline, isNoData } = judgement
  // An alert without its explanation is better than none.
  const explanation = explained
    ? await explain(store, { orgId, definition, group }, now).catch((error: unknown) => {
        log.warn('alert_not_explained', { ruleId: id, message: String(error) })
        return null
      })
    : null
  return {
    measure,
    name,
    value,
    events,
    windowMinutes,
    noData: isNoData,
    filter,
    condition: { ...condition },
    ...(baseline !== null && {
      expected: rounded(baseline.expected),
      deviation: rounded(baseline.deviation),
    }),
    ...(groupBy !== null && { groupBy, group }),
    ...(explanation !== null && {
      explanation: explanationText(explanation),
      explained: { ...explanation, causes: [...explanation.causes].map((cause) => ({ ...cause })) },
    }),
  }
}

const rounded = (value: number): number => Math.round(value * 1_000) / 1_000
