/** Makes events of spans and log records. Every attribute is stored in `metadata`, except content. */
import { isoTime } from '../clock.ts'
import { limits } from '../limits.ts'
import { cutChars } from '../text/text.ts'
import {
  decisions,
  eventPrefixes,
  isContent,
  logConventions,
  sources,
  spanConventions,
  type Meaning,
} from './conventions.ts'
import type { Attributes, AttributeValue, Instant, LogRecord, Origin, Span } from './model.ts'

export interface MappingOptions {
  keep: 'agents' | 'all'
  content: boolean
}

type Fields = { [field: string]: unknown }

/** What becomes of an item: its events, or why it has none. */
export type Fate =
  | { kind: 'mapped'; events: Fields[] }
  | { kind: 'model call' }
  | { kind: 'left out' }
  | { kind: 'refused'; path: string; message: string }

const modelCall: Fate = { kind: 'model call' }
const leftOut: Fate = { kind: 'left out' }

const traceIdPattern = /^(?!0{32}$)[0-9a-f]{32}$/
const spanIdPattern = /^(?!0{16}$)[0-9a-f]{16}$/

export function eventsOfSpan(span: Span, options: MappingOptions, nowMs: number): Fate {
  if (!traceIdPattern.test(span.traceId))
    return refused('traceId', 'must have 16 bytes that are not all zero')
  if (!spanIdPattern.test(span.spanId)) return refused('spanId', 'must have 8 bytes that are not all zero')
  const meaning = spanMeaning(span)
  const type = typeOf(meaning, options)
  const decided = guardDecisions(span)
  if (type === null && decided.length === 0) return meaning === 'model call' ? modelCall : leftOut
  const id = `${span.traceId}:${span.spanId}`
  const { attributes, origin, start, end } = span
  const common = {
    siteId: siteOf(attributes, origin),
    sessionId: sessionOf(attributes, span.traceId),
  }
  const details = metadataOf(attributes, origin, options)
  const place = {
    traceId: span.traceId,
    spanId: span.spanId,
    ...(span.parentSpanId === '' ? {} : { parentSpanId: span.parentSpanId }),
    span: cutChars(span.name, nameCharsMax),
    spanKind: spanKinds[span.kind],
  }
  const events: Fields[] = []
  if (type !== null && meaning !== 'decision') {
    const error = span.status === 2 ? span.message : ''
    events.push({
      id,
      ...common,
      occurredAt: timeText(start ?? end, nowMs),
      type,
      ...partsOf(meaning, attributes, span.name, span.status === 2, error),
      durationMs: durationOf(start, end),
      metadata: { ...place, ...details },
    })
  }
  decided.forEach(({ from, time }, index) => {
    events.push({
      id: events.length === 0 ? id : `${id}:${index + 1}`,
      ...common,
      occurredAt: timeText(time ?? end ?? start, nowMs),
      type: 'authz.evaluated',
      ...decisionParts(first(from, sources.decision) ?? '', from),
      tool: toolOf(attributes, ''),
      agent: agentOf(attributes),
      metadata: { ...place, ...details },
    })
  })
  return { kind: 'mapped', events }
}

export function eventsOfLog(record: LogRecord, options: MappingOptions, nowMs: number): Fate {
  const { attributes, origin } = record
  const name = eventName(record)
  const known = Object.hasOwn(logConventions, name) ? logConventions[name] : undefined
  const hasDecision = known === undefined && first(attributes, sources.decision) !== null
  const meaning = known?.meaning ?? (hasDecision ? 'decision' : null)
  const type = typeOf(meaning, options)
  if (type === null || meaning === null) return meaning === 'model call' ? modelCall : leftOut
  const isFailed = String(attributes.values.get('success')) === 'false'
  const parts =
    meaning === 'decision'
      ? { ...logDecision(attributes, hasDecision), tool: toolOf(attributes, '') }
      : partsOf(meaning, attributes, '', isFailed, '')
  const event: Fields = {
    id: logId(record, name),
    siteId: siteOf(attributes, origin),
    sessionId: sessionOf(attributes, record.traceId || serviceOf(origin)),
    occurredAt: timeText(record.time ?? record.observed, nowMs),
    type,
    ...parts,
    durationMs: milliseconds(attributes),
    agent: { ...agentOf(attributes), ...known?.agent, trust: 'declared' },
    metadata: {
      ...(record.traceId === '' ? {} : { traceId: record.traceId }),
      ...(record.spanId === '' ? {} : { parentSpanId: record.spanId }),
      log: cutChars(name, nameCharsMax),
      ...metadataOf(attributes, origin, options),
    },
  }
  return { kind: 'mapped', events: [event] }
}

function refused(path: string, message: string): Fate {
  return { kind: 'refused', path, message }
}

const nameCharsMax = 200

const spanKinds = ['unspecified', 'internal', 'server', 'client', 'producer', 'consumer']

function spanMeaning(span: Span): Meaning | null {
  for (const { attribute, meanings } of spanConventions) {
    const value = attribute === null ? span.name : span.attributes.values.get(attribute)
    if (typeof value !== 'string') continue
    if (typeof meanings === 'string') return meanings
    if (Object.hasOwn(meanings, value)) return meanings[value] ?? null
  }
  return null
}

const types: { readonly [meaning in Meaning]: string } = {
  'tool call': 'tool.executed',
  'tool list': 'tool.surfaced',
  agent: 'agent.invoked',
  client: 'agent.detected',
  'memory read': 'memory.accessed',
  'memory write': 'memory.updated',
  decision: 'authz.evaluated',
  'model call': 'model.called',
}

/** The type of the event; null when none is stored. */
function typeOf(meaning: Meaning | null, { keep }: MappingOptions): string | null {
  if (meaning === null) return keep === 'all' ? 'span.finished' : null
  return meaning === 'model call' && keep !== 'all' ? null : types[meaning]
}

/** Outcome, tool, error and agent of anything but a decision. */
function partsOf(
  meaning: Meaning | null,
  attributes: Attributes,
  spanName: string,
  isFailed: boolean,
  message: string,
): Fields {
  const error = first(attributes, sources.error)
  const cause = error === 'true' ? null : error
  const hasFailed = isFailed || (error !== null && error !== 'false')
  const parts: Fields = { outcome: hasFailed ? 'error' : 'success' }
  if (hasFailed) parts['error'] = cutChars(message || cause || 'failed', limits.errorCharsMax)
  if (meaning === 'tool call') parts['tool'] = toolOf(attributes, spanName)
  parts['agent'] = meaning === 'client' ? clientOf(attributes) : agentOf(attributes)
  return parts
}

/** Spans of tools are named after their operation and the tool. */
const operationPrefix = /^(?:execute_tool|tools\/call|running tool:?|ai\.toolCall) +/

function toolOf(attributes: Attributes, spanName: string): string | undefined {
  const name = first(attributes, sources.tool) ?? spanName.replace(operationPrefix, '')
  return name === '' ? undefined : cutChars(name, limits.toolCharsMax)
}

/** Who acts, as the sender claims it; undefined when it does not. */
function agentOf(attributes: Attributes): Fields | undefined {
  const vendor = first(attributes, sources.vendor)
  const name = first(attributes, sources.agent)
  if (vendor === null && name === null) return undefined
  return {
    ...(vendor === null ? {} : { vendor: cutChars(vendor, limits.vendorCharsMax) }),
    ...(name === null ? {} : { name: cutChars(name, limits.nameCharsMax) }),
    trust: 'declared',
  }
}

function clientOf(attributes: Attributes): Fields {
  const name = first(attributes, sources.client)
  const agent = agentOf(attributes) ?? { trust: 'declared' }
  return name === null ? agent : { ...agent, name: cutChars(name, limits.nameCharsMax) }
}

interface Decided {
  from: Attributes
  time: Instant | null
}

/** The decisions of a guard that the span or one of its events records. */
function guardDecisions(span: Span): Decided[] {
  const found: Decided[] = []
  const has = ({ values }: Attributes) => sources.decision.some((name) => values.has(name))
  if (has(span.attributes)) found.push({ from: span.attributes, time: null })
  for (const { attributes, time } of span.events) if (has(attributes)) found.push({ from: attributes, time })
  return found
}

/** An action that is none of ours has the outcome `unknown`: `success` would count as allowed. */
function decisionParts(action: string, from: Attributes, rule = first(from, sources.rule)): Fields {
  const decision = Object.hasOwn(decisions, action) ? decisions[action] : undefined
  const reason = first(from, sources.reason)
  return {
    outcome: decision === undefined ? 'unknown' : decision === 'deny' ? 'blocked' : 'success',
    policy: {
      ...(decision === undefined ? {} : { decision }),
      ...(rule === null ? {} : { ruleId: cutChars(rule, limits.ruleIdCharsMax) }),
      ...(reason === null ? {} : { reason: cutChars(reason, limits.reasonCharsMax) }),
      ...(action === '' ? {} : { action: cutChars(action, nameCharsMax) }),
    },
  }
}

/** Claude Code and Codex say what was decided, and who: the configuration, a hook or the person. */
function logDecision(attributes: Attributes, isGuard: boolean): Fields {
  if (isGuard) return decisionParts(first(attributes, sources.decision) ?? '', attributes)
  return decisionParts(first(attributes, ['decision']) ?? '', attributes, first(attributes, ['source']))
}

function eventName({ name, attributes, body, origin }: LogRecord): string {
  const attribute = attributes.values.get('event.name')
  const found = name || (typeof attribute === 'string' ? attribute : typeof body === 'string' ? body : '')
  const prefix = Object.hasOwn(eventPrefixes, origin.scope) ? eventPrefixes[origin.scope]! : ''
  return found.startsWith(prefix) ? found : prefix + found
}

/** A resent record has the same id in protobuf and in JSON: the hash of everything in it. */
function logId(
  { time, observed, body, attributes, traceId, spanId, origin }: LogRecord,
  name: string,
): string {
  const when = time ?? observed
  const parts = [
    ...[when?.ms ?? 0, when?.ns ?? 0, name, traceId, spanId, origin.scope, body],
    ...[[...attributes.values], [...origin.resource.values]],
  ]
  const hash = new Bun.CryptoHasher('sha256')
  return `otlp_${hash.update(JSON.stringify(parts)).digest().toString('base64url', 0, 16)}`
}

/** The first of the attributes with a value, as text. */
function first({ values }: Attributes, names: readonly string[]): string | null {
  for (const name of names) {
    const value = values.get(name)
    if (typeof value === 'string' && value !== '') return value
    if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  }
  return null
}

function siteOf(attributes: Attributes, { resource }: Origin): string {
  const own = first(attributes, sources.site) ?? first(resource, sources.site)
  return cutChars(own ?? first(resource, ['service.name']) ?? 'unknown_service', limits.idCharsMax)
}

function serviceOf({ resource }: Origin): string {
  return first(resource, ['service.instance.id', 'service.name']) ?? 'unknown_service'
}

/** A longer id is shortened to a hash, so that two sessions never become one. */
function sessionOf(attributes: Attributes, otherwise: string): string {
  const id = first(attributes, sources.session) ?? otherwise
  return id.length <= limits.idCharsMax ? id : `sha256:${Bun.SHA256.hash(id, 'hex')}`
}

/** RFC 3339 with the nanoseconds; the time of arrival when the sender gave none. */
function timeText(time: Instant | null, nowMs: number): string {
  if (time === null) return isoTime(nowMs)
  const text = isoTime(time.ms)
  return time.ns === 0 ? text : `${text.slice(0, -1)}${String(time.ns).padStart(6, '0')}Z`
}

/** With nanoseconds; undefined when the span did not end, or ended before it started. */
function durationOf(start: Instant | null, end: Instant | null): number | undefined {
  if (start === null || end === null) return undefined
  const nanoseconds = (end.ms - start.ms) * 1_000_000 + end.ns - start.ns
  return nanoseconds < 0 ? undefined : nanoseconds / 1_000_000
}

function milliseconds(attributes: Attributes): number | undefined {
  const ms = Number(first(attributes, sources.duration) ?? Number.NaN)
  return ms >= 0 && Number.isFinite(ms) ? ms : undefined
}

/** Of one value as JSON, and of all of an event: the event stays below 64 KiB. */
const valueBytesMax = 16 * 1024
const valuesBytesMax = 40 * 1024

const serviceParts: readonly [field: string, attribute: string][] = [
  ['service', 'service.name'],
  ['serviceVersion', 'service.version'],
]

const parts: readonly [field: string, names: readonly string[]][] = [
  ['callId', sources.callId],
  ['toolType', sources.toolType],
  ['agentId', sources.agentId],
  ['agentVersion', sources.agentVersion],
  ['clientVersion', sources.clientVersion],
  ['model', sources.model],
  ['memoryStore', sources.store],
]

/** What the dashboard reads by name, then every attribute as it was sent. */
function metadataOf(
  attributes: Attributes,
  { resource, scope }: Origin,
  { content }: MappingOptions,
): Fields {
  const metadata: Fields = {}
  for (const [field, attribute] of serviceParts) {
    const value = resource.values.get(attribute)
    if (typeof value === 'string') metadata[field] = cutChars(value, nameCharsMax)
  }
  if (scope !== '') metadata['scope'] = cutChars(scope, nameCharsMax)
  for (const [field, names] of parts) {
    const value = first(attributes, names)
    if (value !== null) metadata[field] = cutChars(value, nameCharsMax)
  }
  const tokens = tokensOf(attributes)
  if (tokens !== undefined) metadata['tokens'] = tokens
  const records = first(attributes, sources.records)
  if (records !== null) metadata['records'] = Number(records) || 0
  const stored: [string, AttributeValue][] = []
  let { dropped } = attributes
  let bytes = 0
  for (const [name, value] of attributes.values) {
    if (!content && isContent(name)) continue
    const size = sizeOf(name) + sizeOf(value)
    if (size > valueBytesMax || bytes + size > valuesBytesMax) {
      dropped++
      continue
    }
    bytes += size
    stored.push([name, value])
  }
  if (stored.length > 0) metadata['attributes'] = Object.fromEntries(stored)
  if (dropped > 0) metadata['droppedAttributes'] = dropped
  return metadata
}

function tokensOf(attributes: Attributes): { input?: number; output?: number } | undefined {
  const input = Number(first(attributes, sources.inputTokens) ?? Number.NaN)
  const output = Number(first(attributes, sources.outputTokens) ?? Number.NaN)
  if (Number.isNaN(input) && Number.isNaN(output)) return undefined
  return { ...(Number.isNaN(input) ? {} : { input }), ...(Number.isNaN(output) ? {} : { output }) }
}

/** Characters that JSON writes as more than one byte. */
const longCharacter = /[^ -~]|["\\]/

/** Its bytes as JSON with a comma; an upper bound for numbers. */
function sizeOf(value: AttributeValue): number {
  if (typeof value === 'string' && !longCharacter.test(value)) return value.length + 3
  return typeof value === 'number' ? 26 : Buffer.byteLength(JSON.stringify(value)) + 1
}
