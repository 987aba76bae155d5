/** Validates the fields of one event (contract §4) and extracts the ones the store filters by. */
import type { EventRecord } from '../../db/contract/store.ts'
import type { Issue } from '../errors.ts'
import { limits } from '../limits.ts'
import { isLongerThan } from '../text/text.ts'
import { parseTime } from '../clock.ts'

type Fields = { [field: string]: unknown }

const typePattern = /^[a-z][a-z0-9_-]*(?:\.[a-z][a-z0-9_-]*)*$/
const outcomePattern = /^[a-z][a-z0-9_-]*$/
const none: Fields = {}

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
  if (agent !== none) checkAgentDetails(agent, issues)
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
    trust: text(agent['trust'], 'agent.trust', limits.trustCharsMax, issues),
    protocol: text(metadata['protocol'], 'metadata.protocol', limits.protocolCharsMax, issues),
    subject: text(metadata['subject'], 'metadata.subject', limits.subjectCharsMax, issues),
    page: text(metadata['page'], 'metadata.page', limits.pageCharsMax, issues),
    decision:
      text(policy['decision'], 'policy.decision', limits.decisionCharsMax, issues) ??
      impliedDecision(type, outcome),
    ruleId: text(policy['ruleId'], 'policy.ruleId', limits.ruleIdCharsMax, issues),
    reason: text(policy['reason'], 'policy.reason', limits.reasonCharsMax, issues),
    json: '',
  }
  return issues.length === 0 ? record : null
}

/** The fields of `agent` that are validated but not filtered by. `signals` may be anything. */
function checkAgentDetails(agent: Fields, issues: Issue[]): void {
  number(agent['confidence'], 'agent.confidence', 1, issues)
  text(agent['userAgent'], 'agent.userAgent', limits.userAgentCharsMax, issues)
  const version = agent['detectionVersion']
  if (typeof version !== 'number') {
    text(version, 'agent.detectionVersion', limits.detectionVersionCharsMax, issues)
  }
}

/** Contract §6: without `policy.decision` the outcome of an evaluation implies the decision. */
export function impliedDecision(type: string, outcome: string): string | null {
  if (type !== 'authz.evaluated') return null
  if (outcome === 'blocked') return 'deny'
  return outcome === 'success' ? 'allow' : null
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
  else if (isLongerThan(value, charsMax)) issues.push(tooLong(path, charsMax))
  return value
}

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
  if (value === undefined || value === null) return none
  if (isObject(value)) return value
  issues.push({ path, code: 'wrong_type', message: 'must be an object or null' })
  return none
}

function notText(value: unknown, path: string): Issue {
  return value === undefined || value === null
    ? { path, code: 'required', message: 'is required' }
    : { path, code: 'wrong_type', message: 'must be a string' }
}

function tooLong(path: string, charsMax: number): Issue {
  return { path, code: 'too_long', message: `must have at most ${charsMax} characters` }
}
