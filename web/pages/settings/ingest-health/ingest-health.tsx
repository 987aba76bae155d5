/** Settings, Ingest health: requests per hour and key, rejected requests with reasons, and senders with issues. */
import './ingest-health.css'
import { useSignal } from '@preact/signals'
import { DataTable, type CsvFile } from '../../../charts/data-table.tsx'
import { isoTime, now } from '../../../app/clock.ts'
import { Problem } from '../../../components/problem.tsx'
import { Text } from '../../../components/text.tsx'
import { count, duration, minuteTime } from '../../../text/format.ts'
import {
  ingestApi,
  type IngestHealth as Health,
  type IngestHour,
  type IngestKey,
  type NearMiss,
  type OtlpHealth,
  type RejectedRequest,
} from '../../../api/operate-api.ts'
import { session } from '../../../app/session.ts'
import { Choice } from '../../../components/dialog.tsx'
import { IngestHours } from './hours.tsx'
import { Moment } from '../../../components/time.tsx'
import { RoleNote } from '../../../components/role-note.tsx'
import { useRecords } from '../../../query/use-query.ts'
import { RecordTable } from '../../../components/record-table.tsx'
import { hourMs } from '../../../../db/contract/units.ts'

const spans = [
  { value: '24', text: 'Last 24 hours' },
  { value: '168', text: 'Last 7 days' },
] as const

export function IngestHealth() {
  const allowed = session.value?.role !== 'viewer'
  return (
    <section class="settings-section ingest-health">
      <p class="about">
        Requests per hour and key, with the reason for each rejected request and event. A line of an access
        log counts as an event; lost lines of files and syslog are under{' '}
        <a href="/settings/sources">Sources</a>.
      </p>
      {allowed ? <Report /> : <RoleNote text="Only owners, admins and analysts can see ingest health." />}
    </section>
  )
}

function Report() {
  const hours = useSignal('24')
  const span = hours.value
  const {
    data: health,
    error: problem,
    busy,
    refetch,
  } = useRecords<Health>({
    key: `ingest health ${span}`,
    fetch: (signal) => ingestApi.health(isoTime(now() - Number(span) * hourMs), signal),
  })
  return (
    <>
      <div class="health-bar">
        <Choice name="span" label="Time range" options={spans} onChange={(value) => (hours.value = value)} />
        <button type="button" class="button" aria-disabled={busy.value} onClick={refetch}>
          Refresh
        </button>
      </div>
      {problem.value && <Problem error={problem.value} onRetry={refetch} />}
      {health.value && <Content health={health.value} />}
    </>
  )
}

function Content({ health }: { health: Health }) {
  const labels = new Map(health.keys.map(({ id, label }) => [id, label]))
  const labelOf = (keyId: string): string => labels.get(keyId) ?? keyId
  const { totals } = health
  return (
    <>
      <Attention keys={health.keys} nearMisses={health.nearMisses} labelOf={labelOf} />
      {totals.requests === 0 ? (
        <p>
          No requests in this time range. Create a key under{' '}
          <a href="/settings/ingest-keys">SDK ingest keys</a> to send events.
        </p>
      ) : (
        <>
          <dl class="settings-facts" aria-label="Totals">
            <Fact name="Requests" value={totals.requests} />
            <Fact name="Rejected requests" value={totals.refused} />
            <Fact name="Accepted events" value={totals.accepted} />
            <Fact name="Deduplicated events" value={totals.deduped} />
            <Fact name="Rejected events" value={totals.rejected} />
          </dl>
          <IngestHours health={health} />
          <HourTable hours={health.hours} labelOf={labelOf} />
        </>
      )}
      <NearMissTable nearMisses={health.nearMisses} labelOf={labelOf} />
      <ScopeTable otlp={health.otlp} />
      <KeyHealthTable keys={health.keys} />
      <RejectedList rejected={health.rejected} labelOf={labelOf} />
    </>
  )
}

function Fact({ name, value }: { name: string; value: number }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{count(value)}</dd>
    </>
  )
}

interface AttentionProps {
  keys: IngestKey[]
  nearMisses: NearMiss[]
  labelOf: (keyId: string) => string
}

/** Near misses named here; the table below lists all. */
const missesNamed = 5

function Attention({ keys, nearMisses, labelOf }: AttentionProps) {
  const issues = keys.flatMap((key) => keyIssues(key).map((issue) => ({ key, issue })))
  if (issues.length + nearMisses.length === 0) return null
  return (
    <div class="panel attention">
      <h3>Needs attention</h3>
      <ul aria-label="Needs attention">
        {issues.map(({ key, issue }) => (
          <li key={`${key.id} ${issue.text}`}>
            <strong>
              <Text value={key.label} max={36} />
            </strong>
            : {issue.text}. <span class="muted">{issue.advice}</span>
          </li>
        ))}
        {nearMisses.slice(0, missesNamed).map(({ keyId, path, known: knownField }) => (
          <li key={`${keyId} ${path}`}>
            <strong>
              <Text value={labelOf(keyId)} max={36} />
            </strong>
            : unknown field <Text value={path} max={40} mono />. Did you mean <code>{knownField}</code>?
          </li>
        ))}
      </ul>
    </div>
  )
}

interface HourTableProps {
  hours: IngestHour[]
  labelOf: (keyId: string) => string
}

function HourTable({ hours, labelOf }: HourTableProps) {
  const number = (name: string, value: (row: IngestHour) => number) => ({ name, value, number: true })
  return (
    <DataTable
      title="By hour and key"
      csv={{ page: 'ingest-health', table: 'hours', ...hoursPeriod(hours) }}
      sortBy="Hour"
      keyOf={({ hour, keyId }) => `${hour} ${keyId}`}
      rows={hours}
      columns={[
        {
          name: 'Hour',
          time: true,
          value: ({ hour }) => hour,
          show: ({ hour }) => minuteTime(Date.parse(hour)),
        },
        {
          name: 'Key',
          value: ({ keyId }) => labelOf(keyId),
          show: ({ keyId }) => <Text value={labelOf(keyId)} max={36} />,
        },
        number('Requests', (row) => row.requests),
        number('Rejected requests', (row) => row.refused),
        number('Accepted', (row) => row.accepted),
        number('Deduplicated', (row) => row.deduped),
        number('Rejected', (row) => row.rejected),
      ]}
    />
  )
}

/** The period of the rows, for the file name. */
function hoursPeriod(hours: IngestHour[]): Partial<Pick<CsvFile<IngestHour>, 'period'>> {
  const times = hours.map(({ hour }) => hour).toSorted()
  const since = times[0]
  const until = times.at(-1)
  return since === undefined || until === undefined ? {} : { period: { since, until } }
}

/** Hidden when empty, because an empty table would need no action. */
function NearMissTable({
  nearMisses,
  labelOf,
}: {
  nearMisses: NearMiss[]
  labelOf: (keyId: string) => string
}) {
  if (nearMisses.length === 0) return null
  return (
    <DataTable
      title="Unknown fields"
      about="One event per request is checked. Events with unknown fields are stored as sent."
      csv={{ page: 'ingest-health', table: 'unknown-fields' }}
      keyOf={({ keyId, path }) => `${keyId} ${path}`}
      rows={nearMisses}
      columns={[
        {
          name: 'Key',
          value: ({ keyId }) => labelOf(keyId),
          show: ({ keyId }) => <Text value={labelOf(keyId)} max={36} />,
        },
        {
          name: 'Unknown field',
          value: ({ path }) => path,
          show: ({ path }) => <Text value={path} max={40} mono />,
        },
        {
          name: 'Did you mean',
          value: ({ known: knownField }) => knownField,
          show: ({ known: knownField }) => <code>{knownField}</code>,
        },
        { name: 'Checked events', number: true, value: ({ events }) => events },
      ]}
    />
  )
}

/** Hidden without OpenTelemetry data. */
function ScopeTable({ otlp: { since, scopes } }: { otlp: OtlpHealth }) {
  if (scopes.length === 0) return null
  const number = (
    name: string,
    description: string,
    value: (row: OtlpHealth['scopes'][number]) => number,
  ) => {
    return { name, about: description, value, number: true }
  }
  return (
    <DataTable
      title="OpenTelemetry"
      about={<>Spans and log records by the library that made them, since {<Moment iso={since} />}.</>}
      csv={{ page: 'ingest-health', table: 'opentelemetry' }}
      keyOf={({ scope }) => scope}
      rows={scopes}
      columns={[
        {
          name: 'Scope',
          value: ({ scope }) => scope,
          show: ({ scope }) =>
            scope === '' ? <span class="muted">none</span> : <Text value={scope} max={60} mono />,
        },
        number('Events', 'Became events', ({ mapped }) => mapped),
        number('Model calls', 'Not stored unless --otlp-keep is all', ({ modelCalls }) => modelCalls),
        number('Other', 'Not about agents, and not stored', ({ leftOut }) => leftOut),
        number('Rejected', 'Invalid, or for another site', ({ refused }) => refused),
      ]}
    />
  )
}

const clockTones = { fine: 'allow', ahead: 'error', behind: 'error' } as const

function KeyHealthTable({ keys }: { keys: IngestKey[] }) {
  return (
    <DataTable
      title="Keys"
      csv={{ page: 'ingest-health', table: 'keys' }}
      sortBy="Key"
      ascending
      keyOf={({ id }) => id}
      rows={keys}
      empty="No ingest keys yet."
      columns={[
        { name: 'Key', value: ({ label }) => label, show: ({ label }) => <Text value={label} max={36} /> },
        { name: 'State', value: ({ state }) => state },
        {
          name: 'Last used',
          time: true,
          value: ({ lastUsedAt }) => lastUsedAt,
          show: ({ lastUsedAt, neverUsed }) =>
            lastUsedAt !== null ? <Moment iso={lastUsedAt} /> : neverUsed ? 'never' : 'just now',
        },
        {
          name: 'Clock',
          value: ({ clock }) => clock?.state ?? null,
          show: ({ clock }) => clock && <span class={`chip ${clockTones[clock.state]}`}>{clock.state}</span>,
        },
        {
          name: 'Sent from a browser',
          unit: 'UTC',
          value: ({ seenInBrowserAt }) => seenInBrowserAt,
          show: ({ seenInBrowserAt }) => seenInBrowserAt !== null && <Moment iso={seenInBrowserAt} />,
        },
        { name: 'Accepted', value: ({ accepted }) => accepted, number: true },
        { name: 'Deduplicated', value: ({ deduped }) => deduped, number: true },
        { name: 'Rejected', value: ({ rejected }) => rejected, number: true },
      ]}
    />
  )
}

interface RejectedListProps {
  rejected: RejectedRequest[]
  labelOf: (keyId: string) => string
}

/** The newest rejected requests and events: time, key, reason and the start of the body as text. */
function RejectedList({ rejected, labelOf }: RejectedListProps) {
  return (
    <>
      <h3>Rejected requests, newest first</h3>
      {rejected.length === 0 ? (
        <p class="muted">No rejected requests or events.</p>
      ) : (
        <RecordTable
          label="Rejected requests"
          class="rejected-table"
          firstIsName={false}
          rows={rejected}
          keyOf={({ at: timestamp }, n) => `${timestamp} ${n}`}
          columns={[
            { name: 'Time', cell: ({ at: timestamp }) => <Moment iso={timestamp} /> },
            { name: 'Key', cell: ({ keyId }) => <Text value={labelOf(keyId)} max={36} /> },
            { name: 'Reason', cell: (rejection) => <Reason {...rejection} /> },
            { name: 'Body excerpt', cell: ({ excerpt }) => <Excerpt excerpt={excerpt} /> },
          ]}
        />
      )}
    </>
  )
}

function Reason({ code, path, message }: Pick<RejectedRequest, 'code' | 'path' | 'message'>) {
  return (
    <>
      <code>{code}</code>
      {path !== '' && (
        <>
          {' '}
          at <Text value={path} mono max={60} />
        </>
      )}
      <p class="muted">
        <Text value={message} max={200} />
      </p>
    </>
  )
}

function Excerpt({ excerpt }: Pick<RejectedRequest, 'excerpt'>) {
  if (excerpt === '') return <span class="muted">not available</span>
  return (
    <details>
      <summary>
        <Text value={excerpt.slice(0, 200)} mono max={40} />
      </summary>
      <pre>
        <Text value={excerpt} multiline />
      </pre>
    </details>
  )
}

interface KeyIssue {
  text: string
  advice: string
}

/** The issues of an active key. */
export function keyIssues(key: IngestKey): KeyIssue[] {
  const { clock } = key
  if (key.state !== 'active') return []
  return [
    ...(key.seenInBrowserAt === null ? [] : [{ text: 'sent from a browser', advice: advice.browser }]),
    ...(clock === null || clock.state === 'fine'
      ? []
      : [{ text: `clock ${duration(clock.offMs)} ${clock.state}`, advice: advice.clock }]),
    ...(key.neverUsed ? [{ text: 'never used', advice: advice.unused }] : []),
  ]
}

const advice = {
  browser: 'The key is public. Rotate it under SDK ingest keys.',
  clock:
    'Event times are wrong, or events wait too long before they are sent. Synchronize the sender’s clock with NTP.',
  unused: 'Revoke the key if it is not needed.',
}
