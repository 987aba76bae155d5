/** Settings, Organization: name, sign-in policy, deletion, and switching to another organization. */
import { useSignal } from '@preact/signals'
import { Problem, useTask } from '../../../components/problem.tsx'
import { Text } from '../../../components/text.tsx'
import { identityApi, type OwnOrg, type SignInRule } from '../../../api/identity-api.ts'
import { navigate } from '../../../app/router.ts'
import { enter, mayManage, session } from '../../../app/session.ts'
import { api, changingCookie, type Session } from '../../../api/api.ts'
import { Field, FormDialog, textOf } from '../../../components/dialog.tsx'
import { Minute } from '../../../components/time.tsx'
import { RecordTable, RowButton } from '../../../components/record-table.tsx'
import { counted } from '../../../text/format.ts'
import { useRecords } from '../../../query/use-query.ts'

type OpenDialog = 'rename' | 'delete' | 'create' | null

export function Organization() {
  const { data, error, refetch } = useRecords<OwnOrg[]>({ key: 'orgs', fetch: identityApi.orgs })
  const dialog = useSignal<OpenDialog>(null)
  const { problem, run } = useTask()
  const orgs = data.value ?? []
  const failure = problem.value ?? error.value
  const currentSession = session.value
  if (!currentSession) return null
  const current = orgs.find((org) => org.id === currentSession.org.id)
  const close = () => (dialog.value = null)
  const refresh = async (): Promise<void> => {
    enter(await api.session())
    refetch()
  }
  return (
    <section class="settings-section">
      {failure && <Problem error={failure} />}
      {current?.deletesAt && (
        <div class="exposed" role="note">
          <p>
            <strong>
              This organization will be deleted on <Minute iso={current.deletesAt} />.
            </strong>{' '}
            Until then it works as usual. Its audit log is not deleted.
          </p>
          {currentSession.role === 'owner' && (
            <button type="button" class="button" onClick={() => void run(identityApi.keepOrg).then(refetch)}>
              Cancel deletion
            </button>
          )}
        </div>
      )}
      <Facts org={currentSession.org} />
      <p class="button-row">
        {currentSession.role === 'owner' && (
          <button type="button" class="button" onClick={() => (dialog.value = 'rename')}>
            Rename
          </button>
        )}
        {currentSession.role === 'owner' && current && !current.deletesAt && (
          <button type="button" class="button" onClick={() => (dialog.value = 'delete')}>
            Delete organization
          </button>
        )}
        {currentSession.account.operator && (
          <button type="button" class="button" onClick={() => (dialog.value = 'create')}>
            Create organization
          </button>
        )}
      </p>
      {mayManage(currentSession) && <SignInRuleSection />}
      {orgs.length > 1 && <Others orgs={orgs} currentId={currentSession.org.id} />}
      {dialog.value === 'rename' && (
        <RenameDialog name={currentSession.org.name} onDone={refresh} onClose={close} />
      )}
      {dialog.value === 'delete' && (
        <DeleteDialog slug={currentSession.org.slug} onDone={refetch} onClose={close} />
      )}
      {dialog.value === 'create' && <CreateDialog onDone={refetch} onClose={close} />}
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
      <dt>Slug</dt>
      <dd>
        <code>{org.slug}</code>
      </dd>
      <dt>ID</dt>
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
      <RecordTable
        label="Your organizations"
        rows={orgs}
        keyOf={({ id }) => id}
        columns={[
          { name: 'Name', cell: ({ name }) => <Text value={name} max={40} /> },
          { name: 'Slug', cell: ({ slug }) => <code>{slug}</code> },
          { name: 'Role', cell: ({ role }) => role },
        ]}
        actions={(org) =>
          org.id === currentId ? (
            <span class="muted">current</span>
          ) : (
            <RowButton label="Open" of={org.name} onClick={() => void open(org)} />
          )
        }
      />
    </>
  )
}

interface OrgDialogProps {
  onDone: () => void | Promise<void>
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
        hint="The slug does not change."
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
      action="Delete in 7 days"
      danger
      onSubmit={submit}
      onClose={onClose}
    >
      <p>
        Its events, keys, webhooks and memberships are deleted permanently in 7 days. An owner can cancel
        until then. The audit log remains.
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
    <FormDialog title="Create organization" action="Create" onSubmit={submit} onClose={onClose}>
      <p>Organizations share no data. You become the owner of the new organization.</p>
      <Field name="name" label="Name" required maxLength={80} autofocus />
      <Field
        name="slug"
        label="Slug"
        maxLength={40}
        hint="Used on the command line. Empty: derived from the name."
      />
    </FormDialog>
  )
}

const namedMax = 10

/** The sign-in policy: whether members need a second factor, and which members have none. */
function SignInRuleSection() {
  const {
    data: rule,
    error: problem,
    replace,
  } = useRecords({ key: 'sign-in rule', fetch: identityApi.signInRule })
  const changing = useSignal(false)
  const current = rule.value
  return (
    <>
      <h3>Sign-in policy</h3>
      {problem.value && <Problem error={problem.value} />}
      {current && (
        <>
          <p>
            {current.secondFactorRequired
              ? 'A second factor is required. Members without one must set it up before they see data.'
              : 'A second factor is optional.'}{' '}
            {current.lacking.length === 0
              ? 'Every member has one.'
              : `${counted(current.lacking.length, 'member has', 'members have')} none.`}
          </p>
          <p>
            <button type="button" class="button" onClick={() => (changing.value = true)}>
              {current.secondFactorRequired ? 'Make it optional' : 'Require a second factor'}
            </button>
          </p>
        </>
      )}
      {current && changing.value && (
        <ChangeDialog rule={current} onDone={replace} onClose={() => (changing.value = false)} />
      )}
    </>
  )
}

interface ChangeDialogProps {
  rule: SignInRule
  onDone: (changed: SignInRule) => void
  onClose: () => void
}

function ChangeDialog({ rule, onDone, onClose }: ChangeDialogProps) {
  const next = !rule.secondFactorRequired
  const submit = async (): Promise<void> => onDone(await identityApi.changeSignInRule(next))
  return (
    <FormDialog
      title={next ? 'Require a second factor' : 'Make the second factor optional'}
      action={next ? 'Require it' : 'Make it optional'}
      onSubmit={submit}
      onClose={onClose}
    >
      {next ? <Consequences rule={rule} /> : <p>Members can sign in with their password alone.</p>}
    </FormDialog>
  )
}

function Consequences({ rule: { lacking } }: { rule: SignInRule }) {
  return (
    <>
      <p>
        Members without a second factor must set one up the next time they open the dashboard. Until then they
        see no data of this organization. Sign-in through an identity provider counts as a second factor.
      </p>
      {lacking.length > 0 && (
        <>
          <p>{counted(lacking.length, 'member has', 'members have')} none:</p>
          <ul aria-label="Members without a second factor">
            {lacking.slice(0, namedMax).map(({ id, email }) => (
              <li key={id}>
                <Text value={email} max={60} />
              </li>
            ))}
            {lacking.length > namedMax && <li>and {lacking.length - namedMax} more</li>}
          </ul>
        </>
      )}
    </>
  )
}
