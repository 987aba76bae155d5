/** The timeline of a session: each event as a sentence, with the time since the first. */
import type { TraceEvent } from '../../api/api.ts'
import { duration } from '../../text/format.ts'

export type Tone = 'allow' | 'block' | 'error' | 'review' | 'plain'

export interface Step {
  id: string
  atMs: number
  sinceStart: string // "0.0 s", "+2.1 s"
  what: string // the action, as a fixed text
  subject: string | null // a name from the event: untrusted text
  how: string // follows the subject, as a fixed text
  by: string | null // a name from the event
  detail: string | null // a name from the event
  trust: string | null
  outcome: string
  tone: Tone
}

const text = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null)

function toneOf({ outcome, policy, type }: TraceEvent): Tone {
  if (policy?.decision === 'review') return 'review'
  if (outcome === 'blocked' || policy?.decision === 'deny') return 'block'
  if (outcome === 'error' || type === 'sdk.error') return 'error'
  return outcome === 'success' ? 'allow' : 'plain'
}

/** "0.0 s" at the start, "+2.1 s" and "+3 min" after it. */
export function offset(ms: number): string {
  if (ms < 60_000) return `${ms === 0 ? '' : '+'}${(ms / 1_000).toFixed(1)} s`
  return `+${duration(ms)}`
}

type StepText = Pick<Step, 'what' | 'subject' | 'how' | 'by' | 'detail' | 'trust'>

const stepText = (what: string, more: Partial<StepText> = {}): StepText => ({
  ...{ what, subject: null, how: '', by: null, detail: null, trust: null },
  ...more,
})

const verdicts: { [tone in Tone]: string } = {
  allow: 'allowed',
  block: 'refused',
  review: 'sent to review',
  error: 'not decided',
  plain: 'evaluated',
}

function decision(event: TraceEvent, tone: Tone): StepText {
  const rule = text(event.policy?.ruleId)
  return stepText('', {
    subject: text(event.tool) ?? 'access',
    how: rule === null ? verdicts[tone] : `${verdicts[tone]} by`,
    by: rule,
    detail: text(event.policy?.reason),
  })
}

function call(event: TraceEvent, tone: Tone): StepText {
  const took =
    event.durationMs == null ? '' : ` ${tone === 'allow' ? 'in' : 'after'} ${duration(event.durationMs)}`
  const how = tone === 'block' ? 'was blocked' : tone === 'error' ? `failed${took}` : `ran${took}`
  return stepText('', { subject: text(event.tool) ?? 'a tool', how, detail: text(event.error) })
}

function textOfEvent(event: TraceEvent, tone: Tone): StepText {
  const { agent, metadata, tool, error } = event
  const page = text(metadata?.page)
  switch (event.type) {
    case 'agent.detected':
      return stepText('Detected', {
        subject: text(agent?.vendor) ?? 'an agent',
        detail: page,
        trust: text(agent?.trust),
      })
    case 'agent.missed':
      return stepText('Not recognized', { detail: page })
    case 'auth.identity_presented':
      return stepText('Identity', {
        subject: text(metadata?.protocol),
        how: tone === 'allow' ? 'presented' : 'presented, not accepted',
        detail: text(metadata?.subject) ?? text(error) ?? text(event.policy?.reason),
        trust: text(agent?.trust),
      })
    case 'auth.identity_cleared':
      return stepText('Identity cleared')
    case 'authz.evaluated':
      return decision(event, tone)
    case 'tool.executed':
      return call(event, tone)
    case 'memory.accessed':
      return stepText('Read site memory', { detail: page })
    case 'memory.updated':
      return stepText('Site memory updated', { detail: page })
    default:
      return stepText('', { subject: event.type, detail: text(tool) ?? text(error) ?? page })
  }
}

/** `events` are in chronological order. */
export function steps(events: TraceEvent[]): Step[] {
  const startMs = Date.parse(events[0]?.occurredAt ?? '')
  return events.map((event) => {
    const atMs = Date.parse(event.occurredAt)
    const tone = toneOf(event)
    return {
      id: event.id,
      atMs,
      sinceStart: offset(Math.max(0, atMs - startMs)),
      outcome: event.outcome,
      tone,
      ...textOfEvent(event, tone),
    }
  })
}
