/** The facts of an event, each with its label. */
import type { ComponentChildren } from 'preact'
import type { TraceEvent } from '../../api/api.ts'
import { ClassMark, Vial } from '../../components/marks.tsx'
import { Text } from '../../components/text.tsx'
import { aheadMs } from '../../api/field-filters.ts'
import { duration, fullTime, utcTime } from '../../text/format.ts'

function Fact(props: { name: string; children: ComponentChildren }) {
  return (
    <>
      <dt>{props.name}</dt>
      <dd>{props.children}</dd>
    </>
  )
}

/** A non-empty text field; fields of metadata may be anything. */
function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

function TextFact(props: { name: string; value: unknown; mono?: boolean }) {
  const value = textOf(props.value)
  if (value === null) return null
  return (
    <Fact name={props.name}>
      <Text value={value} max={160} mono={props.mono ?? false} />
    </Fact>
  )
}

export function Facts({ event, receivedAtMs }: { event: TraceEvent; receivedAtMs: number }) {
  const occurredAtMs = Date.parse(event.occurredAt)
  const delayMs = receivedAtMs - occurredAtMs
  return (
    <dl class="facts">
      {event.agent && (
        <Fact name="Agent">
          <AgentFact agent={event.agent} />
        </Fact>
      )}
      <TextFact name="Name" value={event.agent?.name} />
      <TextFact name="Purpose" value={event.agent?.purpose} />
      <TextFact name="Tool" value={event.tool} />
      <TextFact name="Page" value={event.metadata?.page} mono />
      <TextFact name="Decision" value={event.policy?.decision} />
      <TextFact name="Protocol" value={event.metadata?.protocol} />
      <TextFact name="Identity" value={event.metadata?.subject} mono />
      {event.durationMs != null && <Fact name="Duration">{duration(event.durationMs)}</Fact>}
      <Fact name="Occurred">
        <time dateTime={event.occurredAt} title={utcTime(occurredAtMs)}>
          {fullTime(occurredAtMs)}
        </time>
      </Fact>
      <Fact name="Received">
        <span title={utcTime(receivedAtMs)}>
          {delayMs > 1_000
            ? `${duration(delayMs)} later`
            : delayMs < -1_000
              ? `${duration(-delayMs)} earlier`
              : 'immediately'}
        </span>
      </Fact>
      {aheadMs(occurredAtMs, receivedAtMs) > 0 && (
        <Fact name="Clock">
          The sender's clock is {duration(aheadMs(occurredAtMs, receivedAtMs))} ahead. The event is listed by
          its arrival time.
        </Fact>
      )}
      <TextFact name="Site" value={event.siteId} mono />
      <TextFact name="Session" value={event.sessionId} mono />
      <TextFact name="Event id" value={event.id} mono />
      <TextFact name="User agent" value={event.agent?.userAgent} mono />
    </dl>
  )
}

function AgentFact({ agent }: { agent: NonNullable<TraceEvent['agent']> }) {
  return (
    <span class="agent-fact">
      {agent.vendor != null && (
        <span>
          <Text value={agent.vendor} max={80} />
        </span>
      )}
      {agent.class != null && (
        <span>
          <ClassMark class={agent.class} /> <Text value={agent.class} max={40} />
        </span>
      )}
      {agent.trust != null && (
        <span>
          <Vial trust={agent.trust} /> <Text value={agent.trust} max={40} />
        </span>
      )}
    </span>
  )
}
