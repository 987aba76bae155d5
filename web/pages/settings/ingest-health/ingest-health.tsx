/** Settings → Ingest health: what came in by hour and key, what was refused and why, and senders that need a look. */
import './ingest-health.css'
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { DataTable } from '../../../charts/data-table.tsx'
import type { CsvFile } from '../../../charts/csv.ts'
import { isoTime, now } from '../../../app/clock.ts'
import { Problem } from '../../../components/problem.tsx'
import { useTask } from '../../../components/task.ts'
import { Text } from '../../../components/text.tsx'
import { count, minuteTime } from '../../../text/format.ts'
import {
  ingestApi,
  type IngestHealth as Health,
  type IngestHour,
  type IngestKey,
  type NearMiss,
} from '../../../api/ingest-api.ts'
import { session } from '../../../app/session.ts'
import { Choice } from '../../../components/form-dialog.tsx'
import { advice, oddities } from './model.ts'
import { IngestHours } from './hours.tsx'
import { Moment } from '../../../components/moment.tsx'
import { RejectedList } from './rejected-list.tsx'

const hourMs = 3_600_000

const spans = [
  { value: '24', text: 'the last 24 hours' },
  { value: '168', text: 'the last 7 days' },
] as const

export function IngestHealth() {
  const allowed = session.value?.role !== 'viewer'
  return (
    <section class="settings-section ingest-health">
      <p class="about">
        What your senders sent and what came of it. A request that was refused as a whole is kept with its
        reason; so is every event that was not taken.
      </p>
      {allowed ? <Report /> : <p class="muted">Ingest health is for owners, admins and analysts.</p>}
    </section>
  )
}

function Report() {
  const known = useSignal<Health | null>(null)
  const hours = useSignal('24')
  const { problem, busy, run } = useTask()
  const load = () =>
    run(async () => {
      // A task runs once at a time: one whose time was changed meanwhile asks again, and draws nothing of the old one.
      for (;;) {
        const asked = hours.peek()
        const found = await ingestApi.health(isoTime(now() - Number(asked) * hourMs))
        if (asked !== hours.peek()) continue
        known.value = found
        return
      }
    })
  useEffect(() => void load(), [])
  return (
    <>
      <div class="health-bar">
        <Choice
          name="span"
          label="Time"
          options={spans}
          onChange={(value) => {
            hours.value = value
            void load()
          }}
        />
        <button type="button" class="button" aria-disabled={busy.value} onClick={() => void load()}>
          Look again
        </button>
      </div>
      {problem.value && <Problem error={problem.value} onRetry={() => void load()} />}
      {known.value && <Drawn health={known.value} />}
    </>
  )
}

function Drawn({ health }: { health: Health }) {
  const labels = new Map(health.keys.map(({ id, label }) => [id, label]))
  const labelOf = (keyId: string): string => labels.get(keyId) ?? keyId
  const { totals } = health
  return (
    <>
      <NeedsALook keys={health.keys} nearMisses={health.nearMisses} labelOf={labelOf} />
      {totals.requests === 0 ? (
        <p>
          No sender has sent anything in this time. Make a key under{' '}
          <a href="/settings/ingest-keys">SDK ingest keys</a>: it comes with a call that proves it.
        </p>
      ) : (
        <>
          <dl class="settings-facts" aria-label="In all">
            <Fact name="Requests" value={totals.requests} />
            <Fact name="Refused" value={totals.refused} />
            <Fact name="Events accepted" value={totals.accepted} />
            <Fact name="Deduped" value={totals.deduped} />
            <Fact name="Rejected" value={totals.rejected} />
          </dl>
          <IngestHours health={health} />
          <HourTable hours={health.hours} labelOf={labelOf} />
        </>
      )}
      <NearMissTable nearMisses={health.nearMisses} labelOf={labelOf} />
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

interface NeedsALookProps {
  keys: IngestKey[]
  nearMisses: NearMiss[]
  labelOf: (keyId: string) => string
}

/** The table below has all of them. */
const missesNamed = 5

function NeedsALook({ keys, nearMisses, labelOf }: NeedsALookProps) {
  const odd = keys.flatMap((key) => oddities(key).map((oddity) => ({ key, oddity })))
  if (odd.length + nearMisses.length === 0) return null
  return (
    <div class="panel needs-a-look">
      <h3>Needs a look</h3>
      <ul aria-label="Needs a look">
        {odd.map(({ key, oddity }) => (
          <li key={`${key.id} ${oddity}`}>
            <strong>
              <Text value={key.label} max={36} />
            </strong>
            : {oddity}. <span class="muted">{advice[oddity.split(' ')[0] ?? '']}</span>
          </li>
        ))}
        {nearMisses.slice(0, missesNamed).map(({ keyId, path, known }) => (
          <li key={`${keyId} ${path}`}>
            <strong>
              <Text value={labelOf(keyId)} max={36} />
            </strong>
            : <Text value={path} max={40} mono /> is not a known field; did you mean <code>{known}</code>?
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
        number('Refused', (row) => row.refused),
        number('Accepted', (row) => row.accepted),
        number('Deduped', (row) => row.deduped),
        number('Rejected', (row) => row.rejected),
      ]}
    />
  )
}

/** The days that the rows are of, for the name of the file. */
function hoursPeriod(hours: IngestHour[]): Partial<Pick<CsvFile<IngestHour>, 'period'>> {
  const times = hours.map(({ hour }) => hour).toSorted()
  const [since, until] = [times[0], times.at(-1)]
  return since === undefined || until === undefined ? {} : { period: { since, until } }
}

/** Only there when something was found: an empty table would ask for nothing. */
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
      about="One event of each request is checked. Events with unknown fields are stored as sent."
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
        { name: 'Did you mean', value: ({ known }) => known, show: ({ known }) => <code>{known}</code> },
        { name: 'Events checked with it', number: true, value: ({ events }) => events },
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
      empty="There is no ingest key yet."
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
          name: 'Seen in a browser',
          unit: 'UTC',
          value: ({ seenInBrowserAt }) => seenInBrowserAt,
          show: ({ seenInBrowserAt }) => seenInBrowserAt !== null && <Moment iso={seenInBrowserAt} />,
        },
        { name: 'Accepted', value: ({ accepted }) => accepted, number: true },
        { name: 'Deduped', value: ({ deduped }) => deduped, number: true },
        { name: 'Rejected', value: ({ rejected }) => rejected, number: true },
      ]}
    />
  )
}
