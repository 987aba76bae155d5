/** Settings, Your account: role, password, second factor and active sign-ins. */
import { useSignal } from '@preact/signals'
import { Problem, useTask } from '../../../components/problem.tsx'
import { Text } from '../../../components/text.tsx'
import { identityApi, type OwnAccount, type OwnSignIn } from '../../../api/identity-api.ts'
import { session, signOut } from '../../../app/session.ts'
import { Field, textOf } from '../../../components/dialog.tsx'
import { SecondFactor } from './second-factor.tsx'
import { Moment } from '../../../components/time.tsx'
import { RecordTable, RowButton } from '../../../components/record-table.tsx'
import { useRecords } from '../../../query/use-query.ts'

export function Account() {
  const {
    data: account,
    error,
    refetch: reload,
  } = useRecords<OwnAccount>({ key: 'account', fetch: identityApi.account })
  const { problem, run } = useTask()
  const currentSession = session.value
  if (!currentSession) return null
  const failure = problem.value ?? error.value
  return (
    <section class="settings-section">
      <dl class="settings-facts">
        <dt>Email</dt>
        <dd>
          <Text value={currentSession.account.email} />
        </dd>
        <dt>Organization</dt>
        <dd>
          <Text value={currentSession.org.name} /> <span class="muted">({currentSession.org.slug})</span>
        </dd>
        <dt>Role</dt>
        <dd>
          {currentSession.role}
          {currentSession.account.operator && ', operator of this appliance'}
        </dd>
      </dl>
      <button type="button" class="button" onClick={() => void run(signOut)}>
        Sign out of this browser
      </button>
      {failure && <Problem error={failure} onRetry={reload} />}
      <h3>Password</h3>
      <PasswordForm onDone={reload} />
      {account.value && <SecondFactor factor={account.value.secondFactor} onDone={reload} />}
      {account.value && <SignInList signIns={account.value.signIns} onDone={reload} />}
    </section>
  )
}

function PasswordForm({ onDone }: { onDone: () => void }) {
  const { busy, problem, run } = useTask()
  const changed = useSignal(false)
  const submit = async (form: HTMLFormElement): Promise<void> => {
    const data = new FormData(form)
    changed.value = await run(() =>
      identityApi.changePassword({ current: textOf(data, 'current'), password: textOf(data, 'password') }),
    )
    if (!changed.value) return
    form.reset()
    onDone()
  }
  return (
    <form
      class="narrow-form"
      onSubmit={(event) => {
        event.preventDefault()
        void submit(event.currentTarget)
      }}
    >
      <Field
        name="current"
        label="Current password"
        type="password"
        autocomplete="current-password"
        required
      />
      <Field
        name="password"
        label="New password"
        type="password"
        autocomplete="new-password"
        hint="At least 8 characters. Signs you out everywhere else."
        required
      />
      {problem.value && <Problem error={problem.value} />}
      {changed.value && <p role="status">Password changed.</p>}
      <button type="submit" class="button" aria-disabled={busy.value}>
        Change password
      </button>
    </form>
  )
}

/** The active sign-ins of your account, and buttons that end them. */
function SignInList({ signIns, onDone }: { signIns: OwnSignIn[]; onDone: () => void }) {
  const { busy, problem, run } = useTask()
  const act = (work: () => Promise<void>) => void run(work).then(onDone)
  return (
    <>
      <h3>Active sign-ins</h3>
      {problem.value && <Problem error={problem.value} />}
      <RecordTable
        label="Active sign-ins"
        rows={signIns}
        keyOf={({ id }) => id}
        columns={[
          { name: 'Browser', cell: ({ userAgent }) => <Text value={userAgent || 'unknown'} max={44} /> },
          { name: 'IP address', cell: ({ address }) => address },
          { name: 'Signed in', cell: ({ createdAt }) => <Moment iso={createdAt} /> },
          { name: 'Last seen', cell: ({ lastSeenAt }) => <Moment iso={lastSeenAt} /> },
        ]}
        actions={({ id, current, userAgent }) =>
          current ? (
            <span class="muted">this browser</span>
          ) : (
            <RowButton
              label="Sign out"
              of={userAgent || 'unknown'}
              onClick={() => act(() => identityApi.endSignIn(id))}
            />
          )
        }
      />
      {signIns.length > 1 && (
        <button
          type="button"
          class="button"
          aria-disabled={busy.value}
          onClick={() => act(identityApi.endOtherSignIns)}
        >
          Sign out everywhere else
        </button>
      )}
    </>
  )
}
