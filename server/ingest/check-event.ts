/** Validates one event (contract §4), extracts the fields the store filters by, and finds misspelled ones. */
import { limits } from '../limits.ts'
import { isDeeperThan } from '../text/json-scan.ts'
import { isLongerThan, nearest } from '../text/text.ts'
import { parseTime } from '../clock.ts'
import { textFields, impliedDecision } from '../../db/contract/event-fields.ts'
import { overLimitIssue } from './rejected.ts'
import type { EventRecord } from '../../db/contract/store.ts'
import type { Issue } from '../errors.ts'

type Fields = { [field: string]: unknown }

/** Without these escapes no value can contain NUL or an unpaired surrogate: UTF-8 cannot carry them unescaped. */
const maybeUnstorable = /\\u(?:0000|[dD][89a-fA-F])/

/** The same in the output of JSON.stringify, which escapes NUL and unpaired surrogates but never a whole pair. */
const unstorable = /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/

const plainName = /^[A-Za-z0-9_.-]{1,64}$/

/** Whether events parsed from this text need the check for characters that cannot be stored. */
export function mayContainUnstorable(text: string): boolean {
  return text.includes('\\u') && maybeUnstorable.test(text)
}

/**
 * The record of a valid event, or null with the problems in `issues`. Its `json` is the output of JSON.stringify; the
 * caller compares it with the text that was sent.
 */
export function validateEvent(
  event: unknown,
  siteIds: readonly string[],
  checkCharacters: boolean,
  issues: Issue[],
): EventRecord | null {
  const record = checkEvent(event, issues)
  if (record === null) return null
  if (isDeeperThan(event, limits.eventDepthMax)) {
    issues.push(overLimitIssue('too_deep'))
    return null
  }
  record.json = JSON.stringify(event)
  if (checkCharacters && unstorable.test(record.json)) {
    const message = 'must not contain NUL or an unpaired surrogate'
    issues.push({ path: unstorableField(event), code: 'wrong_format', message })
    return null
  }
  // Last, so that "all wrong_site" means nothing else was wrong.
  if (siteIds.length > 0 && !siteIds.includes(record.siteId)) {
    issues.push({ path: 'siteId', code: 'wrong_site', message: 'is not allowed for this ingest key' })
    return null
  }
  return record
}

export interface MadeEvents {
  records: EventRecord[]
  positions: number[] // index of each record
  rejected: { index: number; message: string }[]
}

/** Checks events that the appliance made, such as those of access logs, as it checks those that clients send. */
export function acceptMade(events: readonly unknown[]): MadeEvents {
  const result: MadeEvents = { records: [], positions: [], rejected: [] }
  for (let index = 0; index < events.length; index++) {
    const issues: Issue[] = []
    let record = validateEvent(events[index], [], false, issues)
    if (record !== null && mayContainUnstorable(record.json))
      record = validateEvent(events[index], [], true, issues)
    if (record !== null && isLarge(record.json)) issues.push(overLimitIssue('too_large'))
    const [issue] = issues
    if (issue !== undefined || record === null) {
      result.rejected.push({ index, message: `${issue?.path} ${issue?.message}` })
      continue
    }
    result.records.push(record)
    result.positions.push(index)
  }
  return result
}

function isLarge(json: string): boolean {
  // A UTF-16 unit is at most three bytes.
  return json.length * 3 > limits.eventBytesMax && Buffer.byteLength(json) > limits.eventBytesMax
}

/** The first field with such a character, or '' when it is in a name: hostile names are not echoed. */
function unstorableField(event: unknown): string {
  for (const [name, value] of Object.entries(event as object)) {
    if (unstorable.test(JSON.stringify(name))) return ''
    if (unstorable.test(JSON.stringify(value))) return plainName.test(name) ? name : ''
  }
  return ''
}

const typePattern = /^[a-z][a-z0-9_-]*(?:\.[a-z][a-z0-9_-]*)*$/
const outcomePattern = /^[a-z][a-z0-9_-]*$/
const noFields: Fields = {}

/**
 * The record of an event, with `json` still empty; null when `issues` got entries. Optional fields may be null. An
 * empty optional string stays in the event and counts as missing in the record, as in the filters of contract §6.
 * Depth, size and characters are checked elsewhere because they concern unknown fields too.
 */
export function checkEvent(value: unknown, issues: Issue[]): EventRecord | null {
  if (!isObject(value)) {
    issues.push({ path: '', code: 'wrong_type', message: 'must be an object' })
    return null
  }
  const id = requiredText(value['id'], 'id', limits.idCharsMax, issues)
  const siteId = requiredText(value['siteId'], 'siteId', limits.idCharsMax, issues)
  const sessionId = requiredText(value['sessionId'], 'sessionId', limits.idCharsMax, issues)
  const occurredAtMs = time(value['occurredAt'], issues)
  const type = word(value['type'], 'type', limits.typeCharsMax, typePattern, issues)
  const outcome = word(value['outcome'], 'outcome', limits.outcomeCharsMax, outcomePattern, issues)
  const tool = text(value['tool'], 'tool', limits.toolCharsMax, issues)
  const durationMs = number(value['durationMs'], 'durationMs', Number.MAX_VALUE, issues)
  text(value['error'], 'error', limits.errorCharsMax, issues)
  const agent = object(value['agent'], 'agent', issues)
  const policy = object(value['policy'], 'policy', issues)
  const metadata = object(value['metadata'], 'metadata', issues)
  if (agent !== noFields) checkAgentDetails(agent, issues)
  const verdict = text(agent['verdict'], 'agent.verdict', limits.verdictCharsMax, issues)
  const record: EventRecord = {
    id,
    siteId,
    sessionId,
    occurredAtMs,
    type,
    outcome,
    tool,
    durationMs,
    class: text(agent['class'], 'agent.class', limits.classCharsMax, issues),
    vendor: text(agent['vendor'], 'agent.vendor', limits.vendorCharsMax, issues),
    name: text(agent['name'], 'agent.name', limits.nameCharsMax, issues),
    purpose: text(agent['purpose'], 'agent.purpose', limits.purposeCharsMax, issues),
    robots: text(agent['robots'], 'agent.robots', limits.robotsCharsMax, issues),
    trust: text(agent['trust'], 'agent.trust', limits.trustCharsMax, issues),
    verdict,
    judgedBy: verdict === null ? null : 'sender', // `judged` replaces it where the appliance judges
    observedBy: null,
    evidence: null,
    protocol: text(metadata['protocol'], 'metadata.protocol', limits.protocolCharsMax, issues),
    subject: text(metadata['subject'], 'metadata.subject', limits.subjectCharsMax, issues),
    page: text(metadata['page'], 'metadata.page', limits.pageCharsMax, issues),
    decision:
      text(policy['decision'], 'policy.decision', limits.decisionCharsMax, issues) ??
      impliedDecision(type, outcome),
    ruleId: text(policy['ruleId'], 'policy.ruleId', limits.ruleIdCharsMax, issues),
    reason: text(policy['reason'], 'policy.reason', limits.reasonCharsMax, issues),
    network: null,
    json: '',
  }
  return issues.length === 0 ? record : null
}

/** The fields of `agent` that are validated but not filtered by. `signals` and `evidence` may be anything. */
function checkAgentDetails(agent: Fields, issues: Issue[]): void {
  number(agent['confidence'], 'agent.confidence', 1, issues)
  text(agent['userAgent'], 'agent.userAgent', limits.userAgentCharsMax, issues)
  const version = agent['detectionVersion']
  if (typeof version !== 'number') {
    text(version, 'agent.detectionVersion', limits.detectionVersionCharsMax, issues)
  }
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function requiredText(value: unknown, path: string, charsMax: number, issues: Issue[]): string {
  if (typeof value !== 'string') {
    issues.push(notText(value, path))
    return ''
  }
  if (value === '') issues.push({ path, code: 'wrong_format', message: 'must not be empty' })
  else if (value === '.' || value === '..') issues.push({ path, code: 'wrong_format', message: dotId })
  else if (isLongerThan(value, charsMax)) issues.push(tooLong(path, charsMax))
  return value
}

/** Clients and proxies resolve `/v1/traces/..` before they send it, however it is encoded. */
const dotId = 'must not be "." or "..", which no address of a page or of the API can hold'

function word(value: unknown, path: string, charsMax: number, pattern: RegExp, issues: Issue[]): string {
  if (typeof value !== 'string') {
    issues.push(notText(value, path))
    return ''
  }
  if (isLongerThan(value, charsMax)) issues.push(tooLong(path, charsMax))
  else if (!pattern.test(value)) {
    issues.push({ path, code: 'wrong_format', message: `must match ${pattern.source}` })
  }
  return value
}

function time(value: unknown, issues: Issue[]): number {
  const path = 'occurredAt'
  if (typeof value !== 'string') {
    issues.push(notText(value, path))
    return 0
  }
  const ms = parseTime(value)
  if (ms === null) {
    const message = 'must be an RFC 3339 time between 1970 and 2200, such as 2026-06-23T12:00:00Z'
    issues.push({ path, code: 'wrong_format', message })
  }
  return ms ?? 0
}

function text(value: unknown, path: string, charsMax: number, issues: Issue[]): string | null {
  if (value === undefined || value === null || value === '') return null
  if (typeof value !== 'string') {
    issues.push({ path, code: 'wrong_type', message: 'must be a string or null' })
    return null
  }
  if (isLongerThan(value, charsMax)) issues.push(tooLong(path, charsMax))
  return value
}

/** A number from 0 to `max`; 1e999 parses as Infinity and is rejected. */
function number(value: unknown, path: string, max: number, issues: Issue[]): number | null {
  if (value === undefined || value === null) return null
  if (typeof value !== 'number') {
    issues.push({ path, code: 'wrong_type', message: 'must be a number or null' })
    return null
  }
  if (!(value >= 0 && value <= max)) {
    const range = max === Number.MAX_VALUE ? '0 or more' : `from 0 to ${max}`
    issues.push({ path, code: 'wrong_format', message: `must be a finite number, ${range}` })
  }
  return value + 0 // -0 becomes 0
}

function object(value: unknown, path: string, issues: Issue[]): Fields {
  if (value === undefined || value === null) return noFields
  if (isObject(value)) return value
  issues.push({ path, code: 'wrong_type', message: 'must be an object or null' })
  return noFields
}

function notText(value: unknown, path: string): Issue {
  return value === undefined || value === null
    ? { path, code: 'required', message: 'is required' }
    : { path, code: 'wrong_type', message: 'must be a string' }
}

function tooLong(path: string, charsMax: number): Issue {
  return { path, code: 'too_long', message: `must have at most ${charsMax} characters` }
}

/** A field that is probably misspelled or named differently, for the ingest health page. */
export interface NearMiss {
  path: string // as sent, such as latencyMs or agent.user_agent
  known: string // the field that was probably meant
}

function fieldsIn(object: string): string[] {
  return textFields.filter(({ path }) => path[0] === object).map(({ name }) => name)
}

/** The fields that `checkEvent` reads, and those that other parts of the product write. */
const knownFields: { readonly [inside: string]: readonly string[] } = {
  '': [
    'id',
    'siteId',
    'sessionId',
    'occurredAt',
    'type',
    'outcome',
    'tool',
    'durationMs',
    'error',
    'agent',
    'policy',
    'metadata',
  ],
  agent: [
    ...fieldsIn('agent'),
    'confidence',
    'userAgent',
    'detectionVersion',
    'signals',
    'evidence',
    'robotsRule',
  ],
  policy: fieldsIn('policy'),
}

/** Other names of fields, without case, `_`, `-` and spaces; at the top level unless a path is given. */
const aliases: { readonly [field: string]: string } = {
  id: 'eventid uuid guid',
  siteId: 'site website sitename',
  sessionId: 'session sid sess visitid',
  occurredAt: 'timestamp time ts date datetime createdat eventtime',
  type: 'eventtype event eventname kind agent.event',
  outcome: 'status result',
  tool: 'toolname agent.tool',
  durationMs: 'latencyms latency duration elapsed elapsedms took tookms responsetime responsetimems',
  error: 'err errormessage',
  'agent.class': 'agentclass agenttype agent.type agent.kind agent.category',
  'agent.vendor': 'vendor agentvendor agent.provider agent.company agent.operator',
  'agent.name': 'agentname botname bot agent.bot agent.botname agent.agentname',
  'agent.purpose': 'purpose agentpurpose agent.intent',
  'agent.trust': 'trust trustlevel agent.trustlevel',
  'agent.confidence': 'confidence agent.score',
  'agent.userAgent': 'useragent ua agent.ua',
  'policy.decision': 'decision policy.effect policy.action policy.result',
  'policy.ruleId': 'rule ruleid policy.rule policy.id',
  'policy.reason': 'reason policy.message',
  'metadata.page': 'page path url pageurl pathname metadata.path metadata.url metadata.pathname',
  'metadata.protocol': 'protocol authprotocol metadata.authprotocol',
  'metadata.subject': 'subject identity metadata.identity',
}

const byAlias = new Map(
  Object.entries(aliases).flatMap(([field, names]) =>
    names.split(' ').map((name): [alias: string, field: string] => [name, field]),
  ),
)
const nearLettersMin = 4
const namesMax = 64 // checked per object
const charsMax = 64
const foundMax = 8

/** The probable misspellings. A field that the event has under its correct name is never suggested. */
export function nearMisses(event: unknown): NearMiss[] {
  const misses: NearMiss[] = []
  if (!isObject(event)) return misses
  checkNames(event, '', event, misses)
  for (const inside of ['agent', 'policy', 'metadata']) {
    const fields = event[inside]
    if (isObject(fields)) checkNames(fields, inside, event, misses)
  }
  return misses
}

function checkNames(fields: Fields, inside: string, event: Fields, misses: NearMiss[]): void {
  let checked = 0
  for (const name in fields) {
    if (++checked > namesMax || misses.length >= foundMax) return
    if (name.length > charsMax || knownFields[inside]?.includes(name) === true) continue
    const meant = meantBy(name, inside)
    if (meant === null || hasField(event, meant)) continue
    misses.push({ path: inside === '' ? name : `${inside}.${name}`, known: meant })
  }
}

/** Caches by object: names recur and a lookup takes microseconds; hostile names only evict others. */
const meantCaches = new Map<string, Map<string, string | null>>()
const meantCacheMax = 500

function meantBy(name: string, inside: string): string | null {
  let cache = meantCaches.get(inside)
  if (cache === undefined) meantCaches.set(inside, (cache = new Map()))
  const cached = cache.get(name)
  if (cached !== undefined) return cached
  if (cache.size >= meantCacheMax) cache.clear()
  const meant = findMeant(name, inside)
  cache.set(name, meant)
  return meant
}

function findMeant(name: string, inside: string): string | null {
  const plain = name.toLowerCase().replaceAll(/[\s_.-]/g, '')
  const names = knownFields[inside] ?? metadataNames
  const pathOf = (field: string): string => (inside === '' ? field : `${inside}.${field}`)
  const sameField = names.find((field) => field.toLowerCase() === plain)
  // Metadata belongs to the sender: only a different spelling of a reserved name counts.
  if (sameField !== undefined) return sameField === name ? null : pathOf(sameField)
  const alias = byAlias.get(inside === '' ? plain : `${inside}.${plain}`)
  if (alias !== undefined) return alias
  if (inside === 'metadata' || plain.length < nearLettersMin) return null
  const near = nearest(
    plain,
    names.map((field) => field.toLowerCase()),
  )
  const field =
    near === null || !isOneSlip(plain, near)
      ? undefined
      : names.find((candidate) => candidate.toLowerCase() === near)
  return field === undefined ? null : pathOf(field)
}

const metadataNames = ['page', 'protocol', 'subject']

/** Stricter than `nearest`, which allows a third of the letters: custom fields may be that similar. */
function isOneSlip(typed: string, field: string): boolean {
  if (Math.abs(typed.length - field.length) > 1) return false
  const [short, long] = typed.length < field.length ? [typed, field] : [field, typed]
  let start = 0
  while (start < short.length && short[start] === long[start]) start++
  let end = 0
  while (end < short.length - start && short.at(-1 - end) === long.at(-1 - end)) end++
  const left = short.length - start - end
  const right = long.length - start - end
  const isSwap =
    left === 2 && right === 2 && short[start] === long[start + 1] && short[start + 1] === long[start]
  return Math.max(left, right) <= 1 || isSwap
}

/** Whether the event has the field under its correct name. */
function hasField(event: Fields, path: string): boolean {
  const dot = path.indexOf('.')
  const fields = dot < 0 ? event : event[path.slice(0, dot)]
  return isObject(fields) && Object.hasOwn(fields, path.slice(dot + 1))
}
