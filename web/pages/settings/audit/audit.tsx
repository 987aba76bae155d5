/** The audit log: who changed what and when, found again by words, kind and day, and exported as it is filtered. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { csvName } from '../../../charts/csv.ts'
import { isoTime, now } from '../../../app/clock.ts'
import { Dialog } from '../../../components/dialog.tsx'
import { Problem } from '../../../components/problem.tsx'
import { useTask } from '../../../components/task.ts'
import { Text } from '../../../components/text.tsx'
import { identityApi, type AuditEntry } from '../../../api/identity-api.ts'
import { session } from '../../../app/session.ts'
import { fullTime } from '../../../text/format.ts'
import { zone } from '../../../app/zone.ts'
import { actionGroups, differences, facts, filterBody, filterParams, noFilter } from './model.ts'
import { Choice, Field, textOf } from '../../../components/form-dialog.tsx'
import { Instant } from '../../../components/moment.tsx'

export function AuditLog() {
  const filter = useSignal(noFilter)
  const entries = useSignal<AuditEntry[] | null>(null)
  const nextBefore = useSignal<number | null>(null)
  const shown = useSignal<AuditEntry | null>(null)
  const { busy, problem, run } = useTask()
  const load = (more: boolean) =>
    run(async () => {
      // A task runs once at a time: one whose filter changed meanwhile asks again, and draws nothing of the old one.
      for (let older = more; ; older = false) {
        const asked = filter.peek()
        const params = filterParams(asked)
        if (older && nextBefore.value !== null) params.set('before', `${nextBefore.value}`)
        const page = await identityApi.audit(params)
        if (asked !== filter.peek()) continue
        entries.value = older ? [...(entries.value ?? []), ...page.entries] : page.entries
        nextBefore.value = page.nextBefore
        return
      }
    })
  const allowed = session.value?.role !== 'viewer'
  useEffect(() => void (allowed && load(false)), [filter.value])
  if (!allowed) return <p class="muted">The audit log is for owners, admins and analysts.</p>
  return (
    <section class="settings-section">
      <p class="about">
        Every change is one entry, chained to the one before, so tampering shows.{' '}
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
          const [q, action] = [textOf(form, 'q'), textOf(form, 'action')]
          filter.value = { q, action, since: textOf(form, 'since'), until: textOf(form, 'until') }
        }}
      >
        <Field name="q" label="Words" maxLength={200} />
        <Choice name="action" label="About" options={actionGroups} />
        <Field name="since" label={`From (${zone.value})`} type="date" />
        <Field name="until" label={`To (${zone.value})`} type="date" />
        <button type="submit" class="button primary">
          Find
        </button>
      </form>
      <ExportButtons wanted={filterBody(filter.value)} />
      {problem.value && <Problem error={problem.value} onRetry={() => void load(false)} />}
      {entries.value?.length === 0 && <p class="muted">No entries match these filters.</p>}
      {entries.value && entries.value.length > 0 && (
        <EntryTable entries={entries.value} onShow={(entry) => (shown.value = entry)} />
      )}
      {nextBefore.value !== null && (
        <button type="button" class="button" aria-disabled={busy.value} onClick={() => void load(true)}>
          Show older ones
        </button>
      )}
      {shown.value && <EntryDialog entry={shown.value} onClose={() => (shown.value = null)} />}
    </section>
  )
}

/** The answer is fetched, not linked to: an export writes a row of its own, and links are followed by anything. */
function ExportButtons({ wanted }: { wanted: { [member: string]: string } }) {
  const { busy, problem, run } = useTask()
  const save = (format: 'csv' | 'json') =>
    run(async () => {
      const blob = await identityApi.exportAudit({ ...wanted, format })
      const link = document.createElement('a')
      link.href = URL.createObjectURL(blob)
      link.download = fileName(wanted).replace(/csv$/, format)
      link.click()
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
    })
  return (
    <div>
      <button type="button" class="button" aria-disabled={busy.value} onClick={() => void save('csv')}>
        Export CSV
      </button>{' '}
      <button type="button" class="button" aria-disabled={busy.value} onClick={() => void save('json')}>
        Export JSON
      </button>
      {problem.value && <Problem error={problem.value} />}
    </div>
  )
}

/** Named after the organization and the days that were asked for; without a beginning after today. */
function fileName({ since, until }: { since?: string; until?: string }): string {
  const file = { page: 'audit', table: session.peek()?.org.slug ?? 'organization' }
  if (since === undefined) return csvName(file, now())
  return csvName({ ...file, period: { since, until: until ?? isoTime(now()) } }, now())
}

function EntryTable({ entries, onShow }: { entries: AuditEntry[]; onShow: (entry: AuditEntry) => void }) {
  return (
    <div class="panel table-panel" tabIndex={0} role="region" aria-label="Audit entries">
      <table class="key-table">
        <thead>
          <tr>
            <th scope="col">When</th>
            <th scope="col">Who</th>
            <th scope="col">What</th>
            <th scope="col">On</th>
            <th scope="col">Address</th>
          </tr>
        </thead>
        <tbody>
          {entries.map((entry) => (
            <tr key={entry.id}>
              <td>
                <Instant iso={entry.occurredAt} />
              </td>
              <td>
                <Named name={entry.actorName} id={entry.actor} />
              </td>
              <td>
                <button type="button" class="entry-link" aria-haspopup="dialog" onClick={() => onShow(entry)}>
                  {entry.action}
                </button>
              </td>
              <td>
                <Named name={entry.targetName} id={entry.target} />
              </td>
              <td class="mono">{entry.address === null ? '' : <Text value={entry.address} max={40} />}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** A name and its id; an id alone is its own name. */
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
          <dt>When</dt>
          <dd>{fullTime(Date.parse(entry.occurredAt))}</dd>
          <dt>Who</dt>
          <dd>
            <Named name={entry.actorName} id={entry.actor} />
          </dd>
          <dt>On</dt>
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
          <dt>Row</dt>
          <dd>
            {entry.position} <code>{entry.id}</code>
          </dd>
        </dl>
        {changed.length > 0 && (
          <table class="key-table" aria-label="What changed">
            <thead>
              <tr>
                <th scope="col">Member</th>
                <th scope="col">Before</th>
                <th scope="col">After</th>
              </tr>
            </thead>
            <tbody>
              {changed.map(({ name, before, after }) => (
                <tr key={name}>
                  <th scope="row">{name}</th>
                  <td>
                    <Text value={before} max={60} />
                  </td>
                  <td>
                    <Text value={after} max={60} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </div>
      <div class="dialog-foot">
        <button type="button" class="button" autofocus onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  )
}
