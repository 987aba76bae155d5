/** Settings, Sites: names of sites, which are hidden, and which accept only keys that name them. */
import { useSignal } from '@preact/signals'
import { Problem } from '../../../components/problem.tsx'
import { Text } from '../../../components/text.tsx'
import { identityApi, type Site } from '../../../api/identity-api.ts'
import { mayManage, session } from '../../../app/session.ts'
import { Field, FormDialog, textOf } from '../../../components/dialog.tsx'
import { RecordTable, RowButton } from '../../../components/record-table.tsx'
import { useRecords } from '../../../query/use-query.ts'

export function Sites() {
  const { data: sites, error: problem, refetch } = useRecords({ key: 'sites', fetch: identityApi.sites })
  const editing = useSignal<Site | null>(null)
  const allowed = mayManage(session.value)
  return (
    <section class="settings-section">
      <p class="about">
        A site is created with its first event. Hidden sites are not offered in filters; their events remain.
        Restricted sites accept events only from ingest keys that name them.
      </p>
      {problem.value && <Problem error={problem.value} onRetry={refetch} />}
      {sites.value?.length === 0 && <p class="muted">No sites yet. Send an event to create one.</p>}
      {sites.value && sites.value.length > 0 && (
        <SiteTable sites={sites.value} onEdit={allowed ? (site) => (editing.value = site) : null} />
      )}
      {editing.value && (
        <SiteDialog site={editing.value} onDone={refetch} onClose={() => (editing.value = null)} />
      )}
    </section>
  )
}

function SiteTable({ sites, onEdit }: { sites: Site[]; onEdit: ((site: Site) => void) | null }) {
  return (
    <RecordTable
      label="Sites"
      rows={sites}
      keyOf={({ siteId }) => siteId}
      isEnded={({ hidden }) => hidden}
      columns={[
        { name: 'Site', cell: ({ siteId }) => <Text value={siteId} max={40} /> },
        {
          name: 'Name',
          cell: ({ name }) =>
            name === null ? <span class="muted">none</span> : <Text value={name} max={40} />,
        },
        {
          name: 'Hosts',
          cell: ({ hosts }) =>
            hosts.length === 0 ? <span class="muted">none</span> : <Text value={hosts.join(' ')} max={60} />,
        },
        { name: 'State', cell: stateText },
      ]}
      actions={onEdit && ((site) => <RowButton label="Edit" of={site.siteId} onClick={() => onEdit(site)} />)}
    />
  )
}

function stateText({ hidden, restricted, seen: hasEvents }: Site): string {
  const states = [hidden ? 'hidden' : 'visible']
  if (restricted) states.push('restricted')
  if (!hasEvents) states.push('no events yet')
  return states.join(', ')
}

function SiteDialog({ site, onDone, onClose }: { site: Site; onDone: () => void; onClose: () => void }) {
  const submit = async (form: FormData): Promise<void> => {
    const hidden = form.has('hidden')
    const restricted = form.has('restricted')
    const hosts = textOf(form, 'hosts')
      .split(/[\s,]+/)
      .filter((host) => host !== '')
    await identityApi.changeSite({
      siteId: site.siteId,
      name: textOf(form, 'name'),
      hidden,
      restricted,
      hosts,
    })
    onDone()
  }
  return (
    <FormDialog title="Edit site" action="Save" onSubmit={submit} onClose={onClose}>
      <p>
        <Text value={site.siteId} mono />
      </p>
      <Field name="name" label="Name" value={site.name ?? ''} maxLength={80} autofocus />
      <Field
        name="hosts"
        label="Hosts"
        value={site.hosts.join(' ')}
        hint="Separated by spaces: shop.example www.shop.example. A signed request counts only for these hosts."
      />
      <label>
        <input type="checkbox" name="hidden" defaultChecked={site.hidden} /> Hidden (not offered in filters)
      </label>
      <label>
        <input type="checkbox" name="restricted" defaultChecked={site.restricted} /> Restricted (only keys
        that name this site can write)
      </label>
    </FormDialog>
  )
}
