/** Why an event was refused or failed, in a sentence, from what the event itself says. */
import type { TraceEvent } from '../../api/api.ts'
import { Vial } from '../../components/marks.tsx'
import { Text } from '../../components/text.tsx'

/** What the refusal is called, or null when nothing was refused and nothing failed. */
function verdict(event: TraceEvent): 'refused' | 'review' | 'failed' | null {
  if (event.outcome === 'blocked' || event.policy?.decision === 'deny') return 'refused'
  if (event.policy?.decision === 'review') return 'review'
  if (event.outcome === 'error' || event.type === 'sdk.error') return 'failed'
  return null
}

const deed = { refused: 'denied this event', review: 'requires a review', failed: 'applied' } as const

/** The rule and what it did, the reason given, how far the agent's trust reached: each when the event says it. */
export function Why({ event }: { event: TraceEvent }) {
  const found = verdict(event)
  if (found === null) return null
  const { ruleId = null, reason = null } = event.policy ?? {}
  const told = reason ?? event.error ?? null
  const trust = found === 'failed' ? null : (event.agent?.trust ?? null)
  return (
    <section class={`why ${found}`}>
      <h3>Why</h3>
      <p>
        {ruleId !== null && (
          <>
            Rule <Text value={ruleId} max={80} mono /> {deed[found]}
            {told === null ? '. ' : ': '}
          </>
        )}
        {told === null ? 'The event has no reason.' : <Text value={told} multiline />}
        {ruleId === null && found === 'refused' && ' (no rule)'}
      </p>
      {trust !== null && (
        <p>
          The agent’s trust was <Vial trust={trust} />{' '}
          <b>
            <Text value={trust} max={40} />
          </b>
          .
        </p>
      )}
    </section>
  )
}
