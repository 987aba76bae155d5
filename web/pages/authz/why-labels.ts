/** Labels of the explanation of a decision, computed from its event and earlier events of the session. */
import type { TraceEvent } from '../../api/api.ts'

export function isRefusal(event: TraceEvent): boolean {
  if (event.type !== 'authz.evaluated') return false // a blocked call repeats the denial of its evaluation
  const decision = event.policy?.decision ?? null
  return decision === null ? event.outcome === 'blocked' : decision === 'deny'
}

export function verdictOf(event: TraceEvent): string {
  if (isRefusal(event)) return 'Denied'
  if (event.policy?.decision === 'review') return 'Held for review'
  return event.policy?.decision === 'allow' || event.outcome === 'success' ? 'Allowed' : 'Decided'
}

/** Denials earlier in the session, and those for the same tool. */
export function attempts(event: TraceEvent, earlier: TraceEvent[]): { refusals: number; sameTool: number } {
  const refused = earlier.filter(isRefusal)
  const sameTool = refused.filter((one) => event.tool != null && one.tool === event.tool)
  return { refusals: refused.length, sameTool: sameTool.length }
}

const deeds: { [type: string]: string } = {
  'agent.detected': 'Detected',
  'agent.missed': 'Not recognized',
  'auth.identity_presented': 'Presented an identity',
  'auth.identity_cleared': 'Cleared its identity',
  'authz.policies_set': 'Policies set',
  'authz.evaluated': 'Requested',
  'memory.accessed': 'Read site memory',
  'memory.updated': 'Changed site memory',
  'tool.registered': 'Registered',
  'tool.executed': 'Called',
  'tool.surfaced': 'Received tools',
  'tool.progressed': 'Progressed',
  'sdk.error': 'Client error',
}

export function deedOf(event: TraceEvent): string {
  return Object.hasOwn(deeds, event.type) ? (deeds[event.type] ?? event.type) : event.type
}

/** The fields by which an agent was recognized. */
export function evidenceOf(event: TraceEvent): { name: string; text: string }[] {
  const agent = (event.agent ?? {}) as { [member: string]: unknown }
  const found: { name: string; text: string }[] = []
  const add = (name: string, text: unknown): void => {
    if (typeof text === 'string' && text !== '') found.push({ name, text })
  }
  if (typeof agent['confidence'] === 'number') {
    add('Confidence', `${Math.round(agent['confidence'] * 100)} %`)
  }
  const { signals } = agent
  if (typeof signals === 'object' && signals !== null) add('Signals', signalText(signals))
  add('User agent', agent['userAgent'])
  add('Detection', agent['detectionVersion'])
  const page = event.metadata?.page
  add('Page', page)
  return found
}

/** Signals are a list of names or an object. */
function signalText(signals: object): string {
  if (Array.isArray(signals)) return signals.map((signal) => plain(signal)).join(', ')
  return Object.entries(signals)
    .map(([name, value]) => (value === true ? name : `${name} ${plain(value)}`))
    .join(', ')
}

function plain(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
