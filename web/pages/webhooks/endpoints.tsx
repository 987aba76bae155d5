/** The endpoints with their health and actions. */
import { now } from '../../app/clock.ts'
import { Text } from '../../components/text.tsx'
import { ago, count, counted } from '../../text/format.ts'
import { place, withQuery } from '../../app/router.ts'
import type { Endpoint } from '../../api/webhook-api.ts'
import { Moment } from '../../components/time.tsx'
import { healthOf } from './labels.ts'

export type EndpointAction = 'pause' | 'resume' | 'replay-dead' | 'rotate' | 'range' | 'test'

interface EndpointsProps {
  endpoints: Endpoint[]
  may: boolean
  busy: boolean
  onAct: (act: EndpointAction, endpoint: Endpoint) => void
}

export function Endpoints({ endpoints, may, busy, onAct }: EndpointsProps) {
  return (
    <section class="panel endpoints" aria-label="Endpoints">
      <header>
        <h2>Endpoints</h2>
        {endpoints.length > 0 && <small class="muted">{counted(endpoints.length, 'endpoint')}</small>}
        <a class="button" href="/settings/webhooks">
          {may ? 'Manage endpoints' : 'View in Settings'}
        </a>
      </header>
      {endpoints.length === 0 && (
        <p class="muted">No endpoints yet. Add one in Settings to receive events as webhooks.</p>
      )}
      <ul>
        {endpoints.map((endpoint) => (
          <EndpointLine key={endpoint.id} endpoint={endpoint} may={may} busy={busy} onAct={onAct} />
        ))}
      </ul>
    </section>
  )
}

function EndpointLine(props: Omit<EndpointsProps, 'endpoints'> & { endpoint: Endpoint }) {
  const { endpoint, may, busy, onAct } = props
  const health = healthOf(endpoint)
  const name = endpoint.label || endpoint.url
  const search = withQuery(place.value.search, { endpoint: [endpoint.id], delivery: [] })
  const button = (act: EndpointAction, label: string) => (
    <button type="button" class="button" aria-disabled={busy} onClick={() => onAct(act, endpoint)}>
      {label}
      <span class="visually-hidden"> {name}</span>
    </button>
  )
  return (
    <li>
      <div class="endpoint-name">
        <span class={`chip ${health.tone}`}>{health.label}</span>
        <a href={`${place.value.path}${search}`}>
          <Text value={name} max={64} />
        </a>
        {endpoint.label !== '' && (
          <small class="muted">
            <Text value={endpoint.url} max={64} mono />
          </small>
        )}
      </div>
      <EndpointFacts endpoint={endpoint} />
      {may && (
        <div class="endpoint-acts">
          {endpoint.status === 'active' ? button('pause', 'Pause') : button('resume', 'Resume')}
          {endpoint.deadLetters > 0 && button('replay-dead', 'Replay dead letters')}
          {button('range', 'Replay time range')}
          {button('rotate', 'Rotate secret')}
          {button('test', 'Send test')}
        </div>
      )}
    </li>
  )
}

function EndpointFacts({ endpoint }: { endpoint: Endpoint }) {
  const { failingSince, lastSuccessAt, nextProbeAt, missed, replayUntil } = endpoint
  return (
    <p class="endpoint-facts">
      <span>{count(endpoint.delivered)} delivered</span>
      <span>{count(endpoint.pending)} pending</span>
      <span class={endpoint.deadLetters > 0 ? 'bad' : ''}>
        {counted(endpoint.deadLetters, 'dead letter')}
      </span>
      {lastSuccessAt !== null && (
        <span>
          last success <Moment iso={lastSuccessAt} />
        </span>
      )}
      {failingSince !== null && <span class="bad">first failure {ago(Date.parse(failingSince), now())}</span>}
      {nextProbeAt !== null && endpoint.pausedReason === 'failing' && <span>retried every hour</span>}
      {replayUntil !== null && <span>replay in progress</span>}
      {missed > 0 && <span class="bad">{counted(missed, 'event')} expired before delivery</span>}
    </p>
  )
}
