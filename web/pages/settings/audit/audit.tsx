/** Settings, Audit log: filters by text, action and day, and exports the filtered entries. */
import { useSignal } from '@preact/signals'
import { csvName } from '../../../charts/data-table.tsx'
import { dayStart, isoTime, now, zone } from '../../../app/clock.ts'
import { Choice, Dialog, Field, textOf } from '../../../components/dialog.tsx'
import { Problem, useTask } from '../../../components/problem.tsx'
import { Text } from '../../../components/text.tsx'
import { identityApi, type AuditEntry, type AuditPage, type Metadata } from '../../../api/identity-api.ts'
import { session } from '../../../app/session.ts'
import { fullTime } from '../../../text/format.ts'
import { Instant } from '../../../components/time.tsx'
import { RecordTable } from '../../../components/record-table.tsx'
import { RoleNote } from '../../../components/role-note.tsx'
import type { Query } from '../../../query/query.ts'
import { useRecords } from '../../../query/use-query.ts'

function auditQuery(filter: AuditFilter, beforeSeq: number | null = null): Query<AuditPage> {
  const params = filterParams(filter)
  if (beforeSeq !== null) params.set('before', `${beforeSeq}`)
  return { key: `audit?${params}`, fetch: (signal) => identityApi.audit(params, signal) }
}

export function AuditLog() {
  const filter = useSignal(noFilter)
  const older = useSignal<AuditPage | null>(null) // pages after the first
  const shown = useSignal<AuditEntry | null>(null)
  const { busy, problem, run } = useTask()
  const allowed = session.value?.role !== 'viewer'
  const { data, error, refetch } = useRecords<AuditPage>(allowed ? auditQuery(filter.value) : null)
  const entries = data.value && [...data.value.entries, ...(older.value?.entries ?? [])]
  const nextBefore = (older.value ?? data.value)?.nextBefore ?? null
  const search = (next: AuditFilter): void => {
    const isSame = auditQuery(next).key === auditQuery(filter.peek()).key
    filter.value = next
    older.value = null
    if (isSame) refetch()
  }
  const loadOlder = () =>
    run(async () => {
      const requested = filter.peek()
      const olderPage = older.peek()
      const page = await auditQuery(requested, nextBefore).fetch(new AbortController().signal)
      if (requested !== filter.peek()) return
      older.value = { ...page, entries: [...(olderPage?.entries ?? []), ...page.entries] }
    })
  const failure = problem.value ?? error.value
  if (!allowed) return <RoleNote text="Only owners, admins and analysts can read the audit log." />
  return (
    <section class="settings-section">
      <p class="about">
        Each entry is chained to the previous one, so tampering is detected.{' '}
        <code>sightglass verify audit</code> checks the chain; <code>sightglass verify FILE</code> checks an
        exported proof without this appliance.{' '}
        <a href="/docs/proof" data-native>
          How proofs work
        </a>
      </p>
      <form
        class="audit-filter"
        onSubmit={(event) => {
          event.preventDefault()
          const form = new FormData(event.currentTarget)
          const q = textOf(form, 'q')
          const action = textOf(form, 'action')
          search({ q, action, since: textOf(form, 'since'), until: textOf(form, 'until') })
        }}
      >
        <Field name="q" label="Search" maxLength={200} />
        <Choice name="action" label="Action" options={actionGroups} />
        <Field name="since" label={`From (${zone.value})`} type="date" />
        <Field name="until" label={`To (${zone.value})`} type="date" />
        <button type="submit" class="button primary">
          Search
        </button>
      </form>
      <ExportButtons filter={filterBody(filter.value)} />
      {failure && <Problem error={failure} onRetry={refetch} />}
      {entries?.length === 0 && <p class="muted">No entries match these filters.</p>}
      {entries && entries.length > 0 && (
        <EntryTable entries={entries} onShow={(entry) => (shown.value = entry)} />
      )}
      {nextBefore !== null && (
        <button type="button" class="button" aria-disabled={busy.value} onClick={() => void loadOlder()}>
          Load older
        </button>
      )}
      {shown.value && <EntryDialog entry={shown.value} onClose={() => (shown.value = null)} />}
    </section>
  )
}

/** Fetches the export instead of linking to it: each export adds an audit entry, and anything may follow a link. */
function ExportButtons({ filter }: { filter: { [field: string]: string } }) {
  const { busy, problem, run } = useTask()
  const save = (format: 'csv' | 'json') =>
    run(async () => {
      const blob = await identityApi.exportAudit({ ...filter, format })
      const link = document.createElement('a')
      link.href = URL.createObjectURL(blob)
      link.download = fileName(filter).replace(/csv$/, format)
      link.click()
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
    })
  return (
    <div class="button-row">
      <button type="button" class="button" aria-disabled={busy.value} onClick={() => void save('csv')}>
        Export CSV
      </button>
      <button type="button" class="button" aria-disabled={busy.value} onClick={() => void save('json')}>
        Export JSON
      </button>
      {problem.value && <Problem error={problem.value} />}
    </div>
  )
}

/** The file name: the organization and the filtered days, or today's date without a start. */
function fileName({ since, until }: { since?: string; until?: string }): string {
  const file = { page: 'audit', table: session.peek()?.org.slug ?? 'organization' }
  if (since === undefined) return csvName(file, now())
  return csvName({ ...file, period: { since, until: until ?? isoTime(now()) } }, now())
}

function EntryTable({ entries, onShow }: { entries: AuditEntry[]; onShow: (entry: AuditEntry) => void }) {
  return (
    <RecordTable
      label="Audit entries"
      firstIsName={false}
      rows={entries}
      keyOf={({ id }) => id}
      columns={[
        { name: 'Time', cell: ({ occurredAt }) => <Instant iso={occurredAt} /> },
        { name: 'Actor', cell: ({ actorName, actor }) => <Named name={actorName} id={actor} /> },
        {
          name: 'Action',
          cell: (entry) => (
            <button type="button" class="entry-link" aria-haspopup="dialog" onClick={() => onShow(entry)}>
              {entry.action}
            </button>
          ),
        },
        { name: 'Target', cell: ({ targetName, target }) => <Named name={targetName} id={target} /> },
        {
          name: 'IP address',
          class: 'mono',
          cell: ({ address }) => address !== null && <Text value={address} max={40} />,
        },
      ]}
    />
  )
}

/** A name with its ID below, or the ID alone. */
function Named({ name, id }: { name: string | null; id: string }) {
  if (name === null || name === id) {
    return (
      <code>
        <Text value={id} max={40} />
      </code>
    )
  }
  return (
    <span class="named">
      <Text value={name} max={32} />
      <code>
        <Text value={id} max={40} />
      </code>
    </span>
  )
}

function EntryDialog({ entry, onClose }: { entry: AuditEntry; onClose: () => void }) {
  const changed = differences(entry.metadata)
  return (
    <Dialog title={entry.action} onClose={onClose}>
      <div class="audit-entry">
        <dl>
          <dt>Time</dt>
          <dd>{fullTime(Date.parse(entry.occurredAt))}</dd>
          <dt>Actor</dt>
          <dd>
            <Named name={entry.actorName} id={entry.actor} />
          </dd>
          <dt>Target</dt>
          <dd>
            <Named name={entry.targetName} id={entry.target} />
          </dd>
          {facts(entry.metadata).map(({ name, value }) => (
            <>
              <dt>{name}</dt>
              <dd>
                <Text value={value} />
              </dd>
            </>
          ))}
          <dt>Entry</dt>
          <dd>
            {entry.position} <code>{entry.id}</code>
          </dd>
        </dl>
        {changed.length > 0 && (
          <RecordTable
            label="Changes"
            rows={changed}
            keyOf={({ name }) => name}
            columns={[
              { name: 'Field', cell: ({ name }) => name },
              { name: 'Before', cell: ({ before: oldText }) => <Text value={oldText} max={60} /> },
              { name: 'After', cell: ({ after: newText }) => <Text value={newText} max={60} /> },
            ]}
          />
        )}
      </div>
      <div class="dialog-foot">
        <button type="button" class="button" data-first-focus onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  )
}

interface AuditFilter {
  q: string
  action: string
  since: string
  until: string
}

export const noFilter: AuditFilter = { q: '', action: '', since: '', until: '' }

/** The filter as query parameters. Days are in the chosen time zone; `until` includes its whole day. */
export function filterParams(filter: AuditFilter): URLSearchParams {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(filterBody(filter))) params.set(name, value)
  return params
}

export function filterBody({ q, action, since, until }: AuditFilter): { [field: string]: string } {
  return {
    ...(q === '' ? {} : { q }),
    ...(action === '' ? {} : { action }),
    ...(since === '' ? {} : { since: momentOfDay(since, 0) }),
    ...(until === '' ? {} : { until: momentOfDay(until, 1) }),
  }
}

/** An invalid day is sent unchanged, so that the server's error names it. */
function momentOfDay(day: string, later: number): string {
  const ms = dayStart(day, later)
  return ms === null ? day : isoTime(ms)
}

const actionGroups = [
  { value: '', text: 'All actions' },
  { value: 'session.*', text: 'Sign-ins and sign-outs' },
  { value: 'account.*', text: 'Accounts' },
  { value: 'member.*', text: 'Roles and removals' },
  { value: 'invitation.*', text: 'Invitations' },
  { value: 'ingest_key.*', text: 'Ingest keys' },
  { value: 'secret_key.*', text: 'Secret keys' },
  { value: 'mcp_session.*', text: 'Questions of assistants' },
  { value: 'site.*', text: 'Sites' },
  { value: 'view.*', text: 'Saved views' },
  { value: 'org.*', text: 'Organization' },
  { value: 'webhook.*', text: 'Webhooks' },
  { value: 'audit.*', text: 'Audit log exports and trims' },
  { value: 'traces.*', text: 'Event exports' },
] as const

interface Difference {
  name: string
  before: string
  after: string
}

/** The changed fields of an entry; empty if it has no before and after. */
export function differences(metadata: Metadata): Difference[] {
  const oldFields = fieldsOf(metadata['before'])
  const newFields = fieldsOf(metadata['after'])
  const names = [...new Set([...Object.keys(oldFields), ...Object.keys(newFields)])]
  return names
    .map((name) => ({ name, before: shown(oldFields[name]), after: shown(newFields[name]) }))
    .filter((difference) => difference.before !== difference.after)
}

/** All other fields of an entry's metadata, as text. */
export function facts(metadata: Metadata): { name: string; value: string }[] {
  return Object.entries(metadata)
    .filter(([name]) => !['before', 'after', 'actorLabel'].includes(name)) // shown elsewhere in the dialog
    .map(([name, value]) => ({ name, value: shown(value) }))
}

function fieldsOf(value: unknown): Metadata {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Metadata) : {}
}

function shown(value: unknown): string {
  if (value === undefined || value === null) return 'none'
  return typeof value === 'string' ? value : JSON.stringify(value)
}
