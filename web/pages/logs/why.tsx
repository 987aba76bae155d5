/** Why an event was refused or failed, in a sentence, from what the event itself says. */
import type { TraceEvent } from '../../api.ts'
import { Text } from '../../components/text.tsx'

/** What the refusal is called, or null when nothing was refused and nothing failed. */
function verdict(event: TraceEvent): 'refused' | 'review' | 'failed' | null {
  if (event.outcome === 'blocked' || event.policy?.decision === 'deny') return 'refused'
  if (event.policy?.decision === 'review') return 'review'
  if (event.outcome === 'error' || event.type === 'sdk.error') return 'failed'
  return null
}

export function Why({ event }: { event: TraceEvent }) {
  const found = verdict(event)
  if (found === null) return null
  const { ruleId = null, reason = null } = event.policy ?? {}
  const told = reason ?? event.error ?? null
  return (
    <section class={`why ${found}`}>
      <h3>Why</h3>
      <p>
        {told === null ? 'The event carries no reason.' : <Text value={told} />}
        {ruleId !== null && (
          <>
            {' '}
            Rule <code>{<Text value={ruleId} max={80} mono />}</code>
            {found === 'review' ? ' asks for a review.' : ' decided it.'}
          </>
        )}
        {ruleId === null && found === 'refused' && ' It names no rule.'}
      </p>
    </section>
  )
}
