/** Makes events of spans and log records. Every attribute is stored in `metadata`, except content. */
import { isoTime } from '../clock.ts'
import { limits } from '../limits.ts'
import { cutChars } from '../text/text.ts'
import { partsIn, readAttributes, textOf, type Parts, type Reading } from './attributes.ts'
import {
  decisions,
  eventPrefixes,
  logConventions,
  scopeAgents,
  sources,
  spanConventions,
  vendors,
  type Meaning,
} from './conventions.ts'
import type { Lineage } from './lineage.ts'
import type { Attributes, Instant, LogRecord, Origin, Span } from './model.ts'

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

/** `lineage` has the agents of the request's other spans. */
export function eventsOfSpan(
  span: Span,
  options: MappingOptions,
  nowMs: number,
  lineage: Lineage | null = null,
): Fate {
  if (!traceIdPattern.test(span.traceId))
    return refused('traceId', 'must have 16 bytes that are not all zero')
  if (!spanIdPattern.test(span.spanId)) return refused('spanId', 'must have 8 bytes that are not all zero')
  const meaning = spanMeaning(span)
  const type = typeOf(meaning, options)
  const decided = guardDecisions(span)
  if (type === null && decided.length === 0) return meaning === 'model call' ? modelCall : leftOut
  const { origin, start, end, traceId, spanId, parentSpanId } = span
  const reading = readAttributes(span.attributes, options.content)
  const { parts } = reading
  const id = `${traceId}:${spanId}`
  const siteId = siteOf(parts, origin)
  const sessionId = sessionOf(parts, traceId)
  const agent = withInherited(actorOf(meaning, parts, origin), lineage?.inheritedBy(span))
  const metadata: Fields = { traceId, spanId }
  if (parentSpanId !== '') metadata['parentSpanId'] = parentSpanId
  metadata['span'] = cutChars(span.name, nameCharsMax)
  metadata['spanKind'] = spanKinds[span.kind]
  addDetails(metadata, reading, origin)
  const events: Fields[] = []
  if (type !== null) {
    const isFailed = span.status === 2
    const error = errorOf(parts, isFailed, isFailed ? span.message : '')
    events.push({
      id,
      siteId,
      sessionId,
      occurredAt: timeText(start ?? end, nowMs),
      type,
      outcome: error === null ? 'success' : 'error',
      error: error ?? undefined,
      tool: meaning === 'tool call' ? toolOf(parts, span.name) : undefined,
      durationMs: durationOf(start, end),
      agent,
      metadata,
    })
  }
  decided.forEach(({ from, time }, index) => {
    const guard = from === span.attributes ? parts : partsIn(from)
    const isSpan = events.length === 0 && time === null // the span is nothing but this decision
    events.push({
      id: events.length === 0 ? id : `${id}:${index + 1}`,
      siteId,
      sessionId,
      occurredAt: timeText(time ?? (isSpan ? start : end) ?? end ?? start, nowMs),
      type: 'authz.evaluated',
      ...decisionFields(guard.guard ?? '', guard.rule, guard.reason),
      tool: toolOf(parts, ''),
      durationMs: isSpan ? durationOf(start, end) : undefined,
      agent,
      metadata,
    })
  })
  return { kind: 'mapped', events }
}

export function eventsOfLog(record: LogRecord, options: MappingOptions, nowMs: number): Fate {
  const { attributes, origin, traceId, spanId } = record
  const name = eventName(record)
  const convention = Object.hasOwn(logConventions, name) ? logConventions[name] : undefined
  const hasGuard = convention === undefined && isGuarded(attributes)
  const meaning = convention?.meaning ?? (hasGuard ? 'decision' : null)
  const type = typeOf(meaning, options)
  if (type === null || meaning === null) return meaning === 'model call' ? modelCall : leftOut
  const reading = readAttributes(attributes, options.content)
  const { parts } = reading
  const metadata: Fields = { log: cutChars(name, nameCharsMax) }
  if (traceId !== '') metadata['traceId'] = traceId
  if (spanId !== '') metadata['parentSpanId'] = spanId
  addDetails(metadata, reading, origin)
  const error = errorOf(parts, parts.succeeded === 'false', '')
  const event: Fields = {
    id: logId(record, name),
    siteId: siteOf(parts, origin),
    sessionId: sessionOf(parts, traceId || serviceOf(origin)),
    occurredAt: timeText(record.time ?? record.observed, nowMs),
    type,
    outcome: error === null ? 'success' : 'error',
    error: error ?? undefined,
    tool: meaning === 'tool call' || meaning === 'decision' ? toolOf(parts, '') : undefined,
    durationMs: milliseconds(parts),
    agent: { ...agentOf(parts), ...convention?.agent, trust: 'declared' },
    metadata,
  }
  if (meaning !== 'decision') return { kind: 'mapped', events: [event] }
  // Claude Code and Codex say what was decided, and by whom: the configuration, a hook or the person.
  const decided = hasGuard
    ? decisionFields(parts.guard ?? '', parts.rule, parts.reason)
    : decisionFields(parts.decision ?? '', parts.decidedBy, null)
  return { kind: 'mapped', events: [{ ...event, error: undefined, ...decided }] }
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

/** The error as text; null when there was none. Some senders set an attribute that only says whether. */
function errorOf({ error }: Parts, isFailed: boolean, message: string): string | null {
  const hasError = error !== null && error !== 'false'
  if (!isFailed && !hasError) return null
  const cause = hasError && error !== 'true' ? error : 'failed'
  return cutChars(message === '' ? cause : message, limits.errorCharsMax)
}

/** Without an attribute, spans of tools are named after their operation and the tool. */
const operationPrefix = /^(?:execute_tool|tools\/call|running tool:?|ai\.toolCall) +/

function toolOf({ tool, entity }: Parts, spanName: string): string | undefined {
  const name = tool ?? (spanName === '' ? '' : (entity ?? spanName.replace(operationPrefix, '')))
  return name === '' ? undefined : cutChars(name, limits.toolCharsMax)
}

function vendorOf(provider: string): string {
  const vendor = vendors.get(provider)
  if (vendor !== undefined) return vendor
  const name = provider.toLowerCase()
  const dot = name.indexOf('.')
  return vendors.get(name) ?? (dot < 0 ? undefined : vendors.get(name.slice(0, dot))) ?? provider
}

/**
 * Who acts, as the sender claims it; undefined when it does not. There is nothing to judge the claim by: a span has
 * neither the address nor the signature of a request. So it has no verdict.
 */
function agentOf({ vendor, agent }: Parts): Fields | undefined {
  if (vendor === null && agent === null) return undefined
  return {
    vendor: vendor === null ? undefined : cutChars(vendorOf(vendor), limits.vendorCharsMax),
    name: agent === null ? undefined : cutChars(agent, limits.nameCharsMax),
    trust: 'declared',
  }
}

/** The provider of a memory is no agent. */
function actorOf(meaning: Meaning | null, parts: Parts, { scope }: Origin): Fields | undefined {
  const scopeAgent = scopeAgents.get(scope)
  if (scopeAgent !== undefined) return { ...scopeAgent, trust: 'declared' }
  if (meaning === 'client') return clientOf(parts)
  if (meaning === 'agent') return agentOf({ ...parts, agent: parts.agent ?? parts.entity })
  const isMemory = meaning === 'memory read' || meaning === 'memory write'
  return agentOf(isMemory ? { ...parts, vendor: null } : parts)
}

/** The agent that a span itself names, for `Lineage`; undefined when it names none. */
export function namedAgent(span: Span): Fields | undefined {
  const agent = actorOf(spanMeaning(span), partsIn(span.attributes), span.origin)
  return agent?.['name'] === undefined ? undefined : agent
}

/** A span that names no agent belongs to the nearest ancestor that does. A provider of its own stays. */
function withInherited(agent: Fields | undefined, ancestor: Fields | undefined): Fields | undefined {
  if (ancestor === undefined || agent?.['name'] !== undefined) return agent
  return { ...ancestor, ...(agent?.['vendor'] === undefined ? {} : { vendor: agent['vendor'] }) }
}

function clientOf(parts: Parts): Fields {
  const agent = agentOf(parts) ?? { trust: 'declared' }
  return parts.client === null ? agent : { ...agent, name: cutChars(parts.client, limits.nameCharsMax) }
}

interface Decided {
  from: Attributes
  time: Instant | null
}

function isGuarded({ values }: Attributes): boolean {
  return sources.guard.some((name) => values.has(name))
}

/** The decisions of a guard that the span or one of its events records. */
function guardDecisions(span: Span): Decided[] {
  const results: Decided[] = []
  if (isGuarded(span.attributes)) results.push({ from: span.attributes, time: null })
  for (const { attributes, time } of span.events)
    if (isGuarded(attributes)) results.push({ from: attributes, time })
  return results
}

/** An action that is none of ours has the outcome `unknown`: `success` would count as allowed. */
function decisionFields(action: string, rule: string | null, reason: string | null): Fields {
  const decision = Object.hasOwn(decisions, action) ? decisions[action] : undefined
  return {
    outcome: decision === undefined ? 'unknown' : decision === 'deny' ? 'blocked' : 'success',
    policy: {
      decision,
      ruleId: rule === null ? undefined : cutChars(rule, limits.ruleIdCharsMax),
      reason: reason === null ? undefined : cutChars(reason, limits.reasonCharsMax),
      action: action === '' ? undefined : cutChars(action, nameCharsMax),
    },
  }
}

/** The first of its names that a convention knows: Codex gives its records the place in its source as a name. */
function eventName({ name, attributes, body, origin }: LogRecord): string {
  const prefix = Object.hasOwn(eventPrefixes, origin.scope) ? eventPrefixes[origin.scope]! : ''
  const names = [name, textOf(attributes.values.get('event.name')) ?? '', textOf(body) ?? '']
    .filter((candidate) => candidate !== '')
    .map((candidate) => (candidate.startsWith(prefix) ? candidate : prefix + candidate))
  return names.find((candidate) => Object.hasOwn(logConventions, candidate)) ?? names[0] ?? ''
}

/** A resent record has the same id in protobuf and in JSON: the hash of everything in it. */
function logId(
  { time, observed, body, attributes, traceId, spanId, origin }: LogRecord,
  name: string,
): string {
  const instant = time ?? observed
  const ids = [instant?.ms ?? 0, instant?.ns ?? 0, name, traceId, spanId, origin.scope]
  const parts = JSON.stringify([...ids, body, [...attributes.values]])
  const hash = new Bun.CryptoHasher('sha256')
  hash.update(parts.slice(0, -1)).update(`,${resourceText(origin.resource)}]`)
  return `otlp_${hash.digest().toString('base64url', 0, 16)}`
}

const resourceTexts = new WeakMap<Attributes, string>()
const resourceCharsMax = 8 * 1024

/** A resource as JSON, once for all of its records; of a large one the hash, because each record hashes it again. */
function resourceText(resource: Attributes): string {
  let text = resourceTexts.get(resource)
  if (text === undefined) {
    const json = JSON.stringify([...resource.values])
    text = json.length <= resourceCharsMax ? json : `"${Bun.SHA256.hash(json, 'hex')}"`
    resourceTexts.set(resource, text)
  }
  return text
}

function siteOf({ site }: Parts, { resource }: Origin): string {
  const siteId =
    site ?? textOf(resource.values.get('sightglass.site.id')) ?? textOf(resource.values.get('service.name'))
  return cutChars(siteId ?? 'unknown_service', limits.idCharsMax)
}

function serviceOf({ resource: { values } }: Origin): string {
  return textOf(values.get('service.instance.id')) ?? textOf(values.get('service.name')) ?? 'unknown_service'
}

/** A longer id is shortened to a hash, so that two sessions never become one. */
function sessionOf({ session }: Parts, otherwise: string): string {
  const id = session ?? otherwise
  if (id.length <= limits.idCharsMax) return id
  if (id !== longSession.id) longSession = { id, hash: `sha256:${Bun.SHA256.hash(id, 'hex')}` }
  return longSession.hash
}

/** The last long id, because all items of a resource may have it. */
let longSession = { id: '', hash: '' }

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

function milliseconds({ duration }: Parts): number | undefined {
  const ms = Number(duration ?? Number.NaN)
  return ms >= 0 && Number.isFinite(ms) ? ms : undefined
}

/** What the dashboard reads by name, then every attribute as it was sent. */
function addDetails(
  metadata: Fields,
  { parts, stored, dropped }: Reading,
  { resource, scope }: Origin,
): void {
  const add = (field: string, value: string | null): void => {
    if (value !== null && value !== '') metadata[field] = cutChars(value, nameCharsMax)
  }
  add('service', textOf(resource.values.get('service.name')))
  add('serviceVersion', textOf(resource.values.get('service.version')))
  add('scope', scope)
  add('callId', parts.callId)
  add('toolType', parts.toolType)
  add('agentId', parts.agentId)
  add('agentVersion', parts.agentVersion)
  add('clientVersion', parts.clientVersion)
  add('model', parts.model)
  add('memoryStore', parts.store)
  if (parts.inputTokens !== null || parts.outputTokens !== null)
    metadata['tokens'] = { input: numberIn(parts.inputTokens), output: numberIn(parts.outputTokens) }
  metadata['records'] = numberIn(parts.records)
  metadata['attributes'] = stored
  if (dropped > 0) metadata['droppedAttributes'] = dropped
}

function numberIn(text: string | null): number | undefined {
  const number = Number(text ?? Number.NaN)
  return Number.isFinite(number) ? number : undefined
}
