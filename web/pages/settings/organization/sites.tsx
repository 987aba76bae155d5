/** Sites: where events came from, what each is called, and which keys may write it. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { Problem } from '../../../components/problem.tsx'
import { useTask } from '../../../components/task.ts'
import { Text } from '../../../components/text.tsx'
import { identityApi, type Site } from '../../../api/identity-api.ts'
import { mayManage, session } from '../../../app/session.ts'
import { Field, FormDialog, textOf } from '../../../components/form-dialog.tsx'

export function Sites() {
  const sites = useSignal<Site[] | null>(null)
  const changing = useSignal<Site | null>(null)
  const { problem, run } = useTask()
  const load = () => run(async () => void (sites.value = await identityApi.sites()))
  useEffect(() => void load(), [])
  const allowed = mayManage(session.value)
  return (
    <section class="settings-section">
      <p class="about">
        A site comes into being with its first event. A hidden one is left out of choices, and its events
        stay. A restricted one takes events only from ingest keys that name it.
      </p>
      {problem.value && <Problem error={problem.value} onRetry={() => void load()} />}
      {sites.value?.length === 0 && <p class="muted">No event has arrived yet, so there is no site.</p>}
      {sites.value && sites.value.length > 0 && (
        <SiteTable sites={sites.value} onChange={allowed ? (site) => (changing.value = site) : null} />
      )}
      {changing.value && (
        <SiteDialog
          site={changing.value}
          onDone={() => void load()}
          onClose={() => (changing.value = null)}
        />
      )}
    </section>
  )
}

function SiteTable({ sites, onChange }: { sites: Site[]; onChange: ((site: Site) => void) | null }) {
  return (
    <div class="panel table-panel" tabIndex={0} role="region" aria-label="Sites">
      <table class="key-table">
        <thead>
          <tr>
            <th scope="col">Site</th>
            <th scope="col">Name</th>
            <th scope="col">State</th>
            {onChange && (
              <th scope="col">
                <span class="visually-hidden">Change</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {sites.map((site) => (
            <tr key={site.siteId} class={site.hidden ? 'ended' : undefined}>
              <th scope="row">
                <Text value={site.siteId} max={40} />
              </th>
              <td>
                {site.name === null ? <span class="muted">none</span> : <Text value={site.name} max={40} />}
              </td>
              <td>{stateText(site)}</td>
              {onChange && (
                <td class="actions">
                  <button
                    type="button"
                    class="button"
                    aria-label={`Change ${site.siteId}`}
                    onClick={() => onChange(site)}
                  >
                    Change
                  </button>
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function stateText({ hidden, restricted, seen }: Site): string {
  const words = [hidden ? 'hidden' : 'shown']
  if (restricted) words.push('restricted')
  if (!seen) words.push('no event yet')
  return words.join(', ')
}

function SiteDialog({ site, onDone, onClose }: { site: Site; onDone: () => void; onClose: () => void }) {
  const submit = async (form: FormData): Promise<void> => {
    const [hidden, restricted] = [form.has('hidden'), form.has('restricted')]
    await identityApi.changeSite({ siteId: site.siteId, name: textOf(form, 'name'), hidden, restricted })
    onDone()
  }
  return (
    <FormDialog title="Change site" action="Save" onSubmit={submit} onClose={onClose}>
      <p>
        <Text value={site.siteId} mono />
      </p>
      <Field name="name" label="Name" value={site.name ?? ''} maxLength={80} autofocus />
      <label>
        <input type="checkbox" name="hidden" defaultChecked={site.hidden} /> Hidden: left out of choices
      </label>
      <label>
        <input type="checkbox" name="restricted" defaultChecked={site.restricted} /> Restricted: only keys
        that name it may write
      </label>
    </FormDialog>
  )
}
