/** Rules that compare a measure, as text and as the fields of a form. */
import type { MeasureDefinition, Rule, RuleSettings } from '../../../api/webhook-api.ts'
import { counted } from '../../../text/format.ts'
import { measureOf } from '../../../text/measures.ts'
import { textOf } from '../../../components/dialog.tsx'

export type MeasureName = MeasureDefinition['measure']
export type ConditionName = MeasureDefinition['condition']['kind']

export const measureNames: { readonly [measure in MeasureName]: string } = {
  count: 'Number of events',
  share: 'Share of events',
  errors: 'Number of errors',
  sessions: 'Sessions',
  subjects: 'Identities',
  p95: 'p95 duration',
  tokens: 'Tokens',
}

export const conditionNames: { readonly [condition in ConditionName]: string } = {
  above: 'is above a number',
  below: 'is below a number',
  change: 'differs from the same hour of past weeks',
  absence: 'there are no events',
}

export const windowNames: readonly { value: string; text: string }[] = [
  ...[1, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1_440, 10_080].map((minutes) => ({
    value: String(minutes),
    text: windowText(minutes),
  })),
]

/** Fields that a rule can group by. */
export const groupNames: readonly { value: string; text: string }[] = [
  { value: '', text: 'No groups' },
  ...[
    ['name', 'agent name'],
    ['vendor'],
    ['class', 'agent class'],
    ['siteId', 'site'],
    ['type'],
    ['outcome'],
    ['tool'],
    ['page'],
    ['purpose'],
    ['verdict'],
    ['trust'],
    ['decision'],
    ['ruleId', 'policy rule'],
    ['protocol'],
  ].map(([value = '', text = value]) => ({ value, text })),
]

function windowText(minutes: number): string {
  if (minutes % 1_440 === 0) return counted(minutes / 1_440, 'day')
  return minutes % 60 === 0 ? counted(minutes / 60, 'hour') : counted(minutes, 'minute')
}

/** A value with its unit; null without data. */
export function measureText(measure: MeasureName, value: number | null): string {
  if (value === null) return 'no data'
  if (measure === 'share') return `${Math.round(value * 1_000) / 10} %`
  const short = (Math.round(value * 10) / 10).toLocaleString('en')
  return measure === 'p95' ? `${short} ms` : short
}

/** "share of events with outcome:blocked above 20 % in 1 hour, by vendor, only type:agent.requested". */
export function measureCondition(rule: Partial<Rule>): string {
  const { measure = 'count', condition, windowMinutes = 60, groupBy, forMinutes = 0 } = rule
  const name = measureName(rule)
  const part = measure === 'share' ? onOneLine(rule.of) : ''
  const subject = part === '' ? name : `${name} with ${part}`
  const events = onOneLine(rule.filter)
  const window = windowText(windowMinutes)
  const qualifiers = [
    ...(groupBy ? [`by ${groupBy}`] : []),
    ...(forMinutes > 0 ? [`for ${counted(forMinutes, 'minute')}`] : []),
    ...(events === '' ? [] : [`only ${events}`]),
  ]
  return [`${conditionText(subject, measure, condition)} in ${window}`, ...qualifiers].join(', ')
}

/** "number of requests" where the filter names one type: a request and its detection are two events. */
function measureName({ measure = 'count', filter }: Partial<Rule>): string {
  if (measure === 'p95') return 'p95 duration'
  const [type, ...more] = filter?.['type'] ?? []
  const unit = type === undefined || more.length > 0 ? undefined : measureOf(type)?.unit
  return measure === 'count' && unit !== undefined ? `number of ${unit}` : measureNames[measure].toLowerCase()
}

function conditionText(subject: string, measure: MeasureName, condition: Rule['condition']): string {
  if (condition === undefined || condition.kind === 'absence') return 'no events'
  if (condition.kind !== 'change')
    return `${subject} ${condition.kind} ${measureText(measure, condition.value)}`
  const direction = { up: 'rises', down: 'falls', both: 'changes' }[condition.direction]
  return `${subject} ${direction} beyond ${condition.deviations} deviations of past weeks`
}

/** One filter per line: `type:agent.requested`. */
export function filterText(filter: MeasureDefinition['filter'] | null | undefined): string {
  return Object.entries(filter ?? {})
    .flatMap(([name, values]) => values.map((value) => `${name}:${value}`))
    .join('\n')
}

const onOneLine = (filter: Parameters<typeof filterText>[0]): string =>
  filterText(filter).replaceAll('\n', ', ')

function filterOf(text: string): MeasureDefinition['filter'] {
  const filter: MeasureDefinition['filter'] = {}
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue
    const colon = line.indexOf(':')
    // Without a colon the server names the field that it does not know.
    const [name, value] =
      colon < 0 ? [line.trim(), ''] : [line.slice(0, colon).trim(), line.slice(colon + 1).trim()]
    filter[name] = [...(filter[name] ?? []), value]
  }
  return filter
}

const shareMeasures: readonly MeasureName[] = ['share']

/**
 * The definition that the fields of the form describe. A percentage is shown, a share is sent. Fields that the form
 * lacks stay as they are.
 */
export function definitionOf(form: FormData): RuleSettings {
  const number = (name: string, otherwise: number) => {
    const text = textOf(form, name)
    return text === '' ? otherwise : Number(text)
  }
  const measure = textOf(form, 'measure') as MeasureName
  const kind = textOf(form, 'condition') as ConditionName
  const value = number('value', Number.NaN)
  const windowMinutes = number('windowMinutes', 60)
  return {
    measure: kind === 'absence' ? 'count' : measure,
    filter: filterOf(textOf(form, 'filter')),
    of: measure === 'share' && kind !== 'absence' ? filterOf(textOf(form, 'of')) : null,
    condition:
      kind === 'above' || kind === 'below'
        ? { kind, value: shareMeasures.includes(measure) ? Math.round(value * 1_000) / 100_000 : value }
        : kind === 'absence'
          ? { kind }
          : {
              kind,
              direction: textOf(form, 'direction') as 'up' | 'down' | 'both',
              deviations: number('deviations', 4),
              weeks: number('weeks', 4),
            },
    windowMinutes,
    forMinutes: number('forMinutes', 0),
    keepFiringMinutes: number('keepFiringMinutes', 0),
    noData: form.get('noData') === null ? 'ok' : 'alert',
    eventsMin: number('eventsMin', 0),
    groupBy: textOf(form, 'groupBy') || null,
    notifyPending: form.get('notifyPending') !== null,
  }
}

/** The same question as a rule of a fixed kind, so that it can be tested on the past; null: it cannot. */
export function presetOf(kind: Rule['kind'], form: FormData): RuleSettings | null {
  if (kind !== 'blocked_share' && kind !== 'tool_error_rate') return null
  const isTools = kind === 'tool_error_rate'
  return {
    measure: 'share',
    filter: isTools ? { type: ['tool.executed'] } : {},
    of: { outcome: [isTools ? 'error' : 'blocked'] },
    condition: { kind: 'above', value: Math.round(Number(textOf(form, 'threshold')) * 1_000) / 100_000 },
    windowMinutes: 60,
    eventsMin: Number(textOf(form, 'eventsMin')),
    groupBy: isTools ? 'tool' : null,
  }
}
