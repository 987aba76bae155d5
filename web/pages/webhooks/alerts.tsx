/** The table of alerts, worst first: state, message, severity and who acknowledged it. */
import { type Column, DataTable } from '../../charts/data-table.tsx'
import { Text } from '../../components/text.tsx'
import { Moment } from '../../components/time.tsx'
import { localSentence } from '../../text/format.ts'
import type { Incident } from '../../api/webhook-api.ts'

interface AlertsProps {
  incidents: Incident[] // worst first
  may: boolean
  busy: boolean
  onAcknowledge: (incident: Incident) => void
}

export function Alerts({ incidents, may, busy, onAcknowledge }: AlertsProps) {
  if (incidents.length === 0) return null
  const unresolved = incidents.filter(({ status }) => status !== 'resolved')
  const open = unresolved.filter(({ status }) => status === 'open').length
  const pending = unresolved.filter(({ status }) => status === 'pending').length
  const acknowledged = unresolved.length - open - pending
  const stateTexts = [
    open === 0 ? 'none open' : `${open} open`,
    ...(pending === 0 ? [] : [`${pending} pending`]),
    ...(acknowledged === 0 ? [] : [`${acknowledged} acknowledged`]),
  ]
  return (
    <DataTable
      title="Alerts"
      about={stateTexts.join(', ')}
      csv={{ page: 'webhooks', table: 'alerts' }}
      columns={columnsOf({ may, busy, onAcknowledge })}
      rows={incidents}
      keyOf={({ id }) => id}
      sortBy="" // the order of the server
    />
  )
}

const tones = { critical: 'error', warning: 'block', info: 'review' } as const

const columnsOf = (props: Omit<AlertsProps, 'incidents'>): Column<Incident>[] => [
  {
    name: 'State',
    value: ({ status }) => status,
    show: (incident) => <State incident={incident} {...props} />,
  },
  {
    name: 'Alert',
    value: ({ message }) => message,
    show: ({ message, link }) => (
      <a class="alert-text" href={link} title="Open the related page">
        <Text value={localSentence(message)} max={160} />
      </a>
    ),
  },
  { name: 'Severity', value: ({ severity }) => severity },
  {
    name: 'Opened',
    time: true,
    value: ({ openedAt }) => openedAt,
    show: ({ openedAt }) => <Moment iso={openedAt} />,
  },
  {
    name: 'Acknowledged',
    value: ({ acknowledgedAt }) => acknowledgedAt,
    time: true,
    show: ({ acknowledgedAt }) => acknowledgedAt !== null && <Moment iso={acknowledgedAt} />,
  },
  {
    name: 'Acknowledged by',
    value: ({ acknowledgedByName, acknowledgedBy }) => acknowledgedByName ?? acknowledgedBy,
    show: ({ acknowledgedByName, acknowledgedBy }) => (
      <Text value={acknowledgedByName ?? acknowledgedBy ?? ''} max={40} />
    ),
  },
  {
    name: 'Resolved',
    time: true,
    value: ({ resolvedAt }) => resolvedAt,
    show: ({ resolvedAt }) => resolvedAt !== null && <Moment iso={resolvedAt} />,
  },
]

interface StateProps extends Omit<AlertsProps, 'incidents'> {
  incident: Incident
}

function State({ incident, may, busy, onAcknowledge }: StateProps) {
  const { status, severity, message } = incident
  return (
    <span class="alert-state">
      <span class={`chip ${status === 'open' ? tones[severity] : 'plain'}`}>{status}</span>
      {may && status === 'open' && (
        <button type="button" class="button" aria-disabled={busy} onClick={() => onAcknowledge(incident)}>
          Acknowledge
          <span class="visually-hidden"> {message}</span>
        </button>
      )}
    </span>
  )
}
