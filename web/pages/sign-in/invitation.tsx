/** Accepts an invitation link: shows the organization and role, and asks for a password. */
import './page.css'
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { api, type Role, type Session } from '../../api/api.ts'
import { Problem } from '../../components/problem.tsx'
import { useTask } from '../../components/task.ts'
import { Text } from '../../components/text.tsx'
import { identityApi } from '../../api/identity-api.ts'
import { navigate, place } from '../../app/router.ts'
import { enter } from '../../app/session.ts'
import { CodeField } from './credential-form.tsx'
import { AloneNote, CredentialForm, PasswordField } from './credential-form.tsx'

interface InvitationView {
  email: string
  role: Role
  orgName: string
  hasAccount: boolean
}

export function AcceptInvitation() {
  const invitation = useSignal<InvitationView | null>(null)
  const pendingToken = useSignal<string | null>(null)
  const { busy, problem, run } = useTask()
  const token = place.value.hash.slice(1)
  useEffect(
    () => void run(async () => void (invitation.value = await identityApi.lookAtInvitation(token))),
    [],
  )
  const accept = async (form: FormData): Promise<void> => {
    await run(async () => {
      // Another person may be signed in in this browser; the invited person replaces them.
      if (pendingToken.value !== null) {
        finish(await api.signInWithCode({ token: pendingToken.value, code: String(form.get('code')) }))
        return
      }
      const accepted = await identityApi.acceptInvitation({ token, password: String(form.get('password')) })
      if ('secondFactor' in accepted) pendingToken.value = accepted.token
      else finish(accepted)
    })
  }
  const finish = (accepted: Session): void => {
    enter(accepted)
    navigate('/', { replace: true })
  }
  if (pendingToken.value !== null) {
    return (
      <CredentialForm title="Your account is ready" action="Sign in" busy={busy.value} onSubmit={accept}>
        <p>Enter the code of your second factor to sign in.</p>
        <CodeField />
        {problem.value && <Problem error={problem.value} />}
      </CredentialForm>
    )
  }
  const found = invitation.value
  if (found === null && problem.value?.status === 403) {
    return (
      <AloneNote title="Invitation not valid">
        <Problem error={problem.value} />
        <a class="button primary" href="/sign-in">
          Sign in
        </a>
      </AloneNote>
    )
  }
  return (
    <CredentialForm
      title="Accept invitation"
      action="Accept invitation"
      busy={busy.value || !found}
      onSubmit={accept}
    >
      {found && <Invited invitation={found} />}
      {problem.value && <Problem error={problem.value} />}
    </CredentialForm>
  )
}

function Invited({ invitation: { email, orgName, role, hasAccount } }: { invitation: InvitationView }) {
  return (
    <>
      <p>
        <Text value={email} /> is invited to{' '}
        <strong>
          <Text value={orgName} />
        </strong>{' '}
        as {role}.
      </p>
      {hasAccount ? (
        <PasswordField label="Your password" autocomplete="current-password" />
      ) : (
        <PasswordField label="Choose a password" autocomplete="new-password" isNew />
      )}
    </>
  )
}
