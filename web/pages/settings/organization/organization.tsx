/** The organization that is shown: its name, its end, and the way to the others. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { Problem } from '../../../components/problem.tsx'
import { useTask } from '../../../components/task.ts'
import { Text } from '../../../components/text.tsx'
import { identityApi, type OwnOrg } from '../../../api/identity-api.ts'
import { navigate } from '../../../app/router.ts'
import { enter, mayManage, session } from '../../../app/session.ts'
import { api, changingCookie, type Session } from '../../../api/api.ts'
import { Field, FormDialog, textOf } from '../../../components/form-dialog.tsx'
import { Day } from '../../../components/moment.tsx'
import { SignInRuleSection } from './sign-in-rule.tsx'

type Asking = 'rename' | 'delete' | 'create' | null

export function Organization() {
  const orgs = useSignal<OwnOrg[]>([])
  const asking = useSignal<Asking>(null)
  const { problem, run } = useTask()
  const load = () => run(async () => void (orgs.value = await identityApi.orgs()))
  useEffect(() => void load(), [])
  const who = session.value
  if (!who) return null
  const current = orgs.value.find((org) => org.id === who.org.id)
  const close = () => (asking.value = null)
  const refresh = async (): Promise<void> => {
    enter(await api.session())
    await load()
  }
  return (
    <section class="settings-section">
      {problem.value && <Problem error={problem.value} />}
      {current?.deletesAt && (
        <div class="exposed" role="note">
          <p>
            <strong>
              This organization will be deleted on <Day iso={current.deletesAt} />.
            </strong>{' '}
            Until then everything goes on. Its audit log stays for good.
          </p>
          {who.role === 'owner' && (
            <button
              type="button"
              class="button"
              onClick={() => void run(identityApi.keepOrg).then(() => load())}
            >
              Keep it
            </button>
          )}
        </div>
      )}
      <Facts org={who.org} />
      <p>
        {who.role === 'owner' && (
          <button type="button" class="button" onClick={() => (asking.value = 'rename')}>
            Rename
          </button>
        )}{' '}
        {who.role === 'owner' && current && !current.deletesAt && (
          <button type="button" class="button" onClick={() => (asking.value = 'delete')}>
            Delete organization
          </button>
        )}{' '}
        {who.account.operator && (
          <button type="button" class="button" onClick={() => (asking.value = 'create')}>
            New organization
          </button>
        )}
      </p>
      {mayManage(who) && <SignInRuleSection />}
      {orgs.value.length > 1 && <Others orgs={orgs.value} currentId={who.org.id} />}
      {asking.value === 'rename' && <RenameDialog name={who.org.name} onDone={refresh} onClose={close} />}
      {asking.value === 'delete' && <DeleteDialog slug={who.org.slug} onDone={load} onClose={close} />}
      {asking.value === 'create' && <CreateDialog onDone={load} onClose={close} />}
    </section>
  )
}

function Facts({ org }: { org: Session['org'] }) {
  return (
    <dl class="settings-facts">
      <dt>Name</dt>
      <dd>
        <Text value={org.name} />
      </dd>
      <dt>Short name</dt>
      <dd>
        <code>{org.slug}</code>
      </dd>
      <dt>Id</dt>
      <dd>
        <code>{org.id}</code>
      </dd>
    </dl>
  )
}

function Others({ orgs, currentId }: { orgs: OwnOrg[]; currentId: string }) {
  const { problem, run } = useTask()
  const open = (org: OwnOrg) =>
    run(async () => {
      enter(await changingCookie(() => identityApi.switchOrg(org.id)))
      navigate('/')
    })
  return (
    <>
      <h3>Your organizations</h3>
      {problem.value && <Problem error={problem.value} />}
      <div class="panel table-panel" tabIndex={0} role="region" aria-label="Your organizations">
        <table class="key-table">
          <tbody>
            {orgs.map((org) => (
              <tr key={org.id}>
                <th scope="row">
                  <Text value={org.name} max={40} />
                </th>
                <td>{org.slug}</td>
                <td>{org.role}</td>
                <td class="actions">
                  {org.id === currentId ? (
                    <span class="muted">shown now</span>
                  ) : (
                    <button
                      type="button"
                      class="button"
                      aria-label={`Open ${org.name}`}
                      onClick={() => void open(org)}
                    >
                      Open
                    </button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  )
}

interface OrgDialogProps {
  onDone: () => Promise<unknown>
  onClose: () => void
}

function RenameDialog({ name, onDone, onClose }: OrgDialogProps & { name: string }) {
  const submit = async (form: FormData): Promise<void> => {
    await identityApi.renameOrg(textOf(form, 'name'))
    await onDone()
  }
  return (
    <FormDialog title="Rename organization" action="Rename" onSubmit={submit} onClose={onClose}>
      <Field
        name="name"
        label="Name"
        value={name}
        required
        maxLength={80}
        autofocus
        hint="The short name stays."
      />
    </FormDialog>
  )
}

function DeleteDialog({ slug, onDone, onClose }: OrgDialogProps & { slug: string }) {
  const submit = async (form: FormData): Promise<void> => {
    await identityApi.deleteOrg(textOf(form, 'confirm'))
    await onDone()
  }
  return (
    <FormDialog
      title="Delete organization"
      action="Delete in seven days"
      danger
      onSubmit={submit}
      onClose={onClose}
    >
      <p>
        In seven days its events, keys, webhooks and memberships are deleted for good. Until then any owner
        can take this back. Its audit log stays.
      </p>
      <Field name="confirm" label={`Type ${slug} to confirm`} required autofocus />
    </FormDialog>
  )
}

function CreateDialog({ onDone, onClose }: OrgDialogProps) {
  const submit = async (form: FormData): Promise<void> => {
    const slug = textOf(form, 'slug')
    await identityApi.createOrg({ name: textOf(form, 'name'), ...(slug === '' ? {} : { slug }) })
    await onDone()
  }
  return (
    <FormDialog title="New organization" action="Create organization" onSubmit={submit} onClose={onClose}>
      <p>Organizations share this appliance and nothing else. You will own the new one.</p>
      <Field name="name" label="Name" required maxLength={80} autofocus />
      <Field
        name="slug"
        label="Short name"
        maxLength={40}
        hint="For commands; made from the name when left empty."
      />
    </FormDialog>
  )
}
