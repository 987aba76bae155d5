/** Reads the definition of a rule that compares a measure, from a request or a setup file, and makes it a query. */
import { eventFields, type EventField } from '../../../db/contract/event-fields.ts'
import { vouchedJudges } from '../../../db/contract/provenance.ts'
import { onlyVouched } from '../../../db/rules/vouched-verdicts.ts'
import { wrongField } from '../../http/validate.ts'
import { limits } from '../../limits.ts'
import { shortName } from '../../http/request.ts'
import { nameProblem } from '../../text/names.ts'
import { isLongerThan } from '../../text/text.ts'
import type { Condition, Measure, MeasureDefinition, RuleFilter } from '../../../db/contract/alerts.ts'
import type { AlsoFilter, CountedMember, SeriesFilter, SeriesQuery } from '../../../db/contract/store.ts'

export type Body = { [name: string]: unknown }

/** The fields of a definition, as in requests, responses and setup files. */
export const definitionFields = [
  'filter',
  'measure',
  'of',
  'condition',
  'windowMinutes',
  'forMinutes',
  'keepFiringMinutes',
  'noData',
  'eventsMin',
  'groupBy',
  'groupsMax',
  'notifyPending',
]

/** Windows that divide an hour or consist of hours, so that a back-test can read hourly counts. */
const windows = [1, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1_440, 10_080]
const minutesMax = 24 * 60
const weeksDefault = 4
const deviationsDefault = 4
const filterValuesMax = 50

const measures: readonly Measure[] = ['count', 'errors', 'share', 'sessions', 'subjects', 'p95', 'tokens']
/** Those whose value of several hours is not the sum of the hours. */
const notAdditive: readonly Measure[] = ['sessions', 'subjects', 'p95']

const fields: readonly EventField[] = eventFields
const groupFields = fields.filter(({ termsMax }) => termsMax > 0).map(({ name }) => name)

const ruleFields = ['kind', 'name', 'endpointId', ...definitionFields]

/** Throws 400 for the first invalid field, and for one that is unknown: a misspelled one would be a default. */
export function readDefinition(body: Body): MeasureDefinition {
  requireKnown(body, ruleFields)
  const measure = oneOf(body, 'measure', measures)
  const condition = readCondition(body['condition'], measure)
  const windowMinutes = readWindow(body['windowMinutes'], measure, condition)
  const groupBy = body['groupBy'] ?? null
  if (groupBy !== null && !groupFields.some((name) => name === groupBy))
    throw wrongField('groupBy', `groupBy must be null or one of ${groupFields.join(', ')}`)
  const partValue = body['of'] ?? null
  if ((partValue !== null) !== (measure === 'share'))
    throw wrongField('of', 'of is required for the measure share, and only allowed there', 'required')
  return {
    filter: readFilter('filter', body['filter'] ?? {}),
    measure,
    of: partValue === null ? null : readPart(partValue),
    condition,
    windowMinutes,
    forMinutes: whole(body, 'forMinutes', { min: 0, max: minutesMax, initial: 0 }),
    keepFiringMinutes: whole(body, 'keepFiringMinutes', { min: 0, max: minutesMax, initial: 0 }),
    noData: body['noData'] === undefined ? 'ok' : oneOf(body, 'noData', ['ok', 'alert'] as const),
    eventsMin: whole(body, 'eventsMin', { min: 0, max: 1e9, initial: condition.kind === 'change' ? 20 : 0 }),
    groupBy: groupBy as string | null,
    groupsMax: whole(body, 'groupsMax', { min: 1, max: limits.alertGroupsMax, initial: 20 }),
    notifyPending: readFlag(body, 'notifyPending'),
  }
}

/** Its characters are shown in chats and labels of metrics. */
export function readRuleName(value: unknown): string {
  if (typeof value !== 'string' || value.trim() === '' || isLongerThan(value, limits.labelCharsMax))
    throw wrongField('name', `name must have 1 to ${limits.labelCharsMax} characters`)
  const problem = nameProblem(value)
  if (problem !== null) throw wrongField('name', `name ${problem}`)
  return value
}

const conditionFields: { readonly [kind in Condition['kind']]: readonly string[] } = {
  above: ['kind', 'value'],
  below: ['kind', 'value'],
  change: ['kind', 'direction', 'deviations', 'weeks'],
  absence: ['kind'],
}

function requireKnown(body: Body, knownNames: readonly string[], pathOf = (name: string) => name): void {
  const unknown = Object.keys(body).find((name) => !knownNames.includes(name))
  if (unknown === undefined) return
  const path = pathOf(shortName(unknown))
  throw wrongField(path, `${path} is not a known field; use ${knownNames.join(', ')}`, 'unknown')
}

function readCondition(value: unknown, measure: Measure): Condition {
  const body = object('condition', value)
  const kind = body['kind']
  const pathOf = (name: string) => `condition.${name}`
  if (typeof kind === 'string' && Object.hasOwn(conditionFields, kind))
    requireKnown(body, conditionFields[kind as Condition['kind']], pathOf)
  if (kind === 'above' || kind === 'below') {
    const max = measure === 'share' ? 1 : 1e12
    return { kind, value: number(pathOf('value'), body['value'], { min: 0, max }) }
  }
  if (kind === 'absence') {
    if (measure !== 'count') throw wrongField(pathOf('kind'), 'absence requires the measure count')
    return { kind }
  }
  if (kind !== 'change') throw wrongField(pathOf('kind'), 'kind must be one of above, below, change, absence')
  const direction = body['direction'] ?? 'both'
  if (direction !== 'up' && direction !== 'down' && direction !== 'both')
    throw wrongField(pathOf('direction'), 'direction must be one of up, down, both')
  return {
    kind,
    direction,
    deviations: number(pathOf('deviations'), body['deviations'] ?? deviationsDefault, { min: 1, max: 100 }),
    weeks: number(pathOf('weeks'), body['weeks'] ?? weeksDefault, { min: 2, max: 8, isWhole: true }),
  }
}

function readWindow(value: unknown, measure: Measure, { kind }: Condition): number {
  const minutes = value ?? 60
  if (!windows.some((choice) => choice === minutes))
    throw wrongField('windowMinutes', `windowMinutes must be one of ${windows.join(', ')}`)
  const chosen = minutes as number
  if (chosen > 1_440 && notAdditive.includes(measure))
    throw wrongField('windowMinutes', `${measure} are measured over at most 1,440 minutes`)
  if (kind !== 'change') return chosen
  if (chosen < 60 || chosen > 1_440)
    throw wrongField('windowMinutes', 'a change is measured over 60 to 1,440 minutes')
  if (chosen !== 60 && notAdditive.includes(measure))
    throw wrongField('windowMinutes', `a change of ${measure} is measured over 60 minutes`)
  return chosen
}

/** Whether the value of a window is the sum of its hours. */
export function isAdditive(measure: Measure): boolean {
  return !notAdditive.includes(measure)
}

function readPart(value: unknown): RuleFilter {
  const partFilter = readFilter('of', value)
  if (Object.keys(partFilter).length === 0)
    throw wrongField('of', 'of must have at least one field', 'required')
  return partFilter
}

function readFilter(path: string, value: unknown): RuleFilter {
  const filter: RuleFilter = {}
  for (const [name, fieldValue] of Object.entries(object(path, value))) {
    const fieldPath = `${path}.${name}`
    const field = fields.find((eventField) => eventField.name === name)
    if (field === undefined)
      throw wrongField(
        fieldPath,
        `unknown field; use one of ${fields.map((eventField) => eventField.name).join(', ')}`,
      )
    const values: unknown[] = Array.isArray(fieldValue) ? fieldValue : [fieldValue]
    if (values.length === 0) continue
    if (values.length > filterValuesMax)
      throw wrongField(fieldPath, `${name} must have at most ${filterValuesMax} values`, 'too_many')
    filter[name] = [...new Set(values.map((text) => filterValue(fieldPath, field, text)))].sort()
  }
  if (Buffer.byteLength(JSON.stringify(filter)) > limits.filterBytesMax)
    throw wrongField(path, `${path} must have at most ${limits.filterBytesMax} bytes`, 'too_long')
  return filter
}

const typeForm = /^[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)*(\.\*)?$/

function filterValue(fieldPath: string, { name, charsMax }: EventField, value: unknown): string {
  if (typeof value !== 'string') throw wrongField(fieldPath, 'values must be strings', 'wrong_type')
  const longest = name === 'type' ? charsMax + '.*'.length : charsMax
  if (isLongerThan(value, longest))
    throw wrongField(fieldPath, `values have at most ${longest} characters`, 'too_long')
  if (name === 'type' && !typeForm.test(value))
    throw wrongField(fieldPath, 'a type is dotted, such as tool.executed, or a prefix such as tool.*')
  return value
}

function object(path: string, value: unknown): Body {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Body
  throw wrongField(path, `${path} must be an object`, value === undefined ? 'required' : 'wrong_type')
}

function oneOf<T extends string>(body: Body, name: string, values: readonly T[]): T {
  const choice = values.find((candidate) => candidate === body[name])
  if (choice !== undefined) return choice
  const code = body[name] === undefined ? 'required' : 'wrong_format'
  throw wrongField(name, `${name} must be one of ${values.join(', ')}`, code)
}

function readFlag(body: Body, name: string): boolean {
  const value = body[name] ?? false
  if (typeof value !== 'boolean') throw wrongField(name, `${name} must be true or false`, 'wrong_type')
  return value
}

function whole(
  body: Body,
  name: string,
  { initial, ...range }: { min: number; max: number; initial: number },
) {
  return number(name, body[name] ?? initial, { ...range, isWhole: true })
}

function number(
  path: string,
  value: unknown,
  { min, max, isWhole = false }: { min: number; max: number; isWhole?: boolean },
): number {
  const isFine =
    typeof value === 'number' && value >= min && value <= max && (!isWhole || Number.isInteger(value))
  if (isFine) return value
  const message = `${path} must be a ${isWhole ? 'whole ' : ''}number from ${min} to ${max}`
  throw wrongField(path, message, value === undefined ? 'required' : 'wrong_format')
}

// ---------------------------------------------------------------- query

/** The filter in the form of the store. */
export function storeFilter(filter: RuleFilter): SeriesFilter & { also: AlsoFilter[] } {
  const seriesFilter: SeriesFilter & { also: AlsoFilter[] } = { filter: {}, also: [] }
  for (const [name, values] of Object.entries(filter)) {
    const list = fields.find((field) => field.name === name)?.filter ?? null
    if (list === null) seriesFilter.also.push({ by: name as CountedMember, values })
    else Object.assign(seriesFilter.filter, { [list]: values })
  }
  return { ...seriesFilter, filter: onlyVouched(seriesFilter.filter) }
}

/** Fields that are missing in events stored before judges were recorded, and the verdict, whose judge is. */
const judgedFields: readonly string[] = ['verdict', 'judgedBy', 'observedBy', 'door']

/** Whether the rule is about verdicts or their judges, which are not compared across the upgrade. */
export function isJudged({ filter, of: partFilter, groupBy }: MeasureDefinition): boolean {
  const names = [...Object.keys(filter), ...Object.keys(partFilter ?? {}), groupBy]
  return names.some((name) => name !== null && judgedFields.includes(name))
}

/** Without times and a budget. */
export function seriesOf(
  orgId: string,
  { filter, measure, of: partFilter, groupBy, groupsMax }: MeasureDefinition,
): Omit<SeriesQuery, 'edges' | 'budgetMs'> {
  const value = measure === 'count' || measure === 'errors' || measure === 'share' ? null : measure
  const part = measure === 'errors' ? { outcome: ['error'] } : partFilter
  const isByVerdict = groupBy === 'verdict' && filter['judgedBy'] === undefined
  return {
    orgId,
    ...storeFilter(isByVerdict ? { ...filter, judgedBy: [...vouchedJudges] } : filter),
    ...(part !== null && { part: storeFilter(part) }),
    ...(value !== null && { value }),
    by: groupBy as SeriesQuery['by'],
    groupsMax,
  }
}
