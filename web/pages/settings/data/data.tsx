/** Settings, Data and retention: limits, stored events by type, export and erasure. */
import { useEffect } from 'preact/hooks'
import { Erase } from './erase.tsx'
import { Text } from '../../../components/text.tsx'
import { RecordTable } from '../../../components/record-table.tsx'
import { bytesText, count, counted } from '../../../text/format.ts'
import { overview, refreshOverview, session } from '../../../app/session.ts'
import { useSignal } from '@preact/signals'
import { Problem } from '../../../components/problem.tsx'
import { operateApi, type Retention } from '../../../api/operate-api.ts'
import { Field, FormDialog, textOf } from '../../../components/dialog.tsx'
import { RoleNote } from '../../../components/role-note.tsx'
import { useRecords } from '../../../query/use-query.ts'
import {
  countsRetentionDays,
  deadLetterRetentionDays,
  deliveredRetentionDays,
} from '../../../../db/rules/retention-days.ts'

const shownMax = 30
const gigabyte = 1e9

export function Data() {
  useEffect(() => void refreshOverview(), [])
  const stored = overview.value
  const types = Object.entries(stored?.byType ?? {}).sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))
  return (
    <section class="settings-section">
      <p class="about">
        Events beyond these limits are deleted. Hourly counts are stored for {countsRetentionDays} days,
        delivered webhooks for {deliveredRetentionDays} days, dead letters for {deadLetterRetentionDays} days.
      </p>
      <RetentionLimits />
      {stored !== null && (
        <dl class="settings-facts">
          <dt>Stored events</dt>
          <dd>{count(stored.total)}</dd>
          <dt>Event types</dt>
          <dd>{count(types.length)}</dd>
        </dl>
      )}
      {types.length > 0 && (
        <RecordTable
          label="Events by type"
          rows={types.slice(0, shownMax)}
          keyOf={([type]) => type}
          columns={[
            {
              name: 'Type',
              cell: ([type]) => (
                <a href={`/logs?type=${encodeURIComponent(type)}`}>
                  <Text value={type} max={64} />
                </a>
              ),
            },
            { name: 'Events', number: true, cell: ([, events]) => count(events) },
          ]}
        />
      )}
      {types.length > shownMax && (
        <p class="muted">{counted(types.length - shownMax, 'more type')} not shown.</p>
      )}
      <p>
        To export all events, run <code class="one-line">sightglass export traces --org SLUG</code> on the
        server. To export some of them, filter <a href="/logs">Logs</a> and export the result.
      </p>
      <Erase />
    </section>
  )
}

type Limit = 'days' | 'bytes' | 'auditDays'

/** "30 days", "2.0 GB", "no limit". */
function limitText(kind: Limit, value: number | null): string {
  if (value === null) return 'no limit'
  return kind === 'bytes' ? bytesText(value) : counted(value, 'day')
}

/** A positive number from the form; null if the field is empty. */
function amountOf(text: string): number | null {
  const amount = Number(text.trim().replace(',', '.'))
  return text.trim() === '' || !(amount > 0) ? null : amount
}

/** The retention limits of the organization: days, size and audit log, and the dialog that changes them. */
function RetentionLimits() {
  const {
    data: retention,
    error: problem,
    refetch,
    replace,
  } = useRecords<Retention>({ key: 'retention', fetch: operateApi.retention })
  const changing = useSignal(false)
  if (problem.value) return <Problem error={problem.value} onRetry={refetch} />
  const limits = retention.value
  if (!limits) return null
  const renderLimit = (kind: Limit) => (
    <dd>
      {limitText(kind, limits[kind] ?? limits.appliance[kind])}
      {limits[kind] === null && <span class="muted"> (server default)</span>}
    </dd>
  )
  return (
    <>
      <dl class="settings-facts">
        <dt>Retention</dt>
        {renderLimit('days')}
        <dt>Size limit</dt>
        {renderLimit('bytes')}
        <dt>Current size</dt>
        <dd>{bytesText(limits.eventBytes)}</dd>
        <dt>Audit log retention</dt>
        {renderLimit('auditDays')}
      </dl>
      {session.value?.role === 'owner' ? (
        <button type="button" class="button" onClick={() => (changing.value = true)}>
          Change limits
        </button>
      ) : (
        <RoleNote text="Only owners can change limits." />
      )}
      {changing.value && (
        <LimitsDialog limits={limits} onSaved={replace} onClose={() => (changing.value = false)} />
      )}
    </>
  )
}

interface LimitsDialogProps {
  limits: Retention
  onSaved: (saved: Retention) => void
  onClose: () => void
}

function LimitsDialog({ limits, onSaved, onClose }: LimitsDialogProps) {
  const save = async (form: FormData): Promise<void> => {
    const size = amountOf(textOf(form, 'gigabytes'))
    const bytes = size === null ? null : Math.round(size * gigabyte)
    const days = amountOf(textOf(form, 'days'))
    const auditDays = amountOf(textOf(form, 'auditDays'))
    onSaved(await operateApi.setRetention({ days, bytes, auditDays }))
  }
  const size = limits.bytes === null ? '' : `${limits.bytes / gigabyte}`
  return (
    <FormDialog title="Change limits" action="Save" onSubmit={save} onClose={onClose}>
      <Field
        name="days"
        label="Retention in days"
        value={`${limits.days ?? ''}`}
        hint="Counted from arrival. Empty: server default."
      />
      <Field
        name="gigabytes"
        label="Size limit in GB"
        value={size}
        hint="The oldest events are deleted first. Empty: server default."
      />
      <Field
        name="auditDays"
        label="Audit log retention in days"
        value={`${limits.auditDays ?? ''}`}
        hint="A signed checkpoint replaces deleted entries. Empty: server default."
      />
      <p>Events beyond a limit are deleted permanently. Hourly counts remain.</p>
    </FormDialog>
  )
}
