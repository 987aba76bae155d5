/** An invitation by one-time link: what it is to, and the password that makes it one's own. */
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
import { CodeField } from './code-form.tsx'
import { AloneNote, CredentialForm, PasswordField } from './credential-form.tsx'

interface Looked {
  email: string
  role: Role
  orgName: string
  hasAccount: boolean
}

export function AcceptInvitation() {
  const looked = useSignal<Looked | null>(null)
  const half = useSignal<string | null>(null)
  const { busy, problem, run } = useTask()
  const token = place.value.hash.slice(1)
  useEffect(() => void run(async () => void (looked.value = await identityApi.lookAtInvitation(token))), [])
  const accept = async (form: FormData): Promise<void> => {
    await run(async () => {
      // Somebody else may be signed in in this browser; from here on it is the invited person.
      if (half.value !== null) {
        finish(await api.signInWithCode({ token: half.value, code: String(form.get('code')) }))
        return
      }
      const joined = await identityApi.acceptInvitation({ token, password: String(form.get('password')) })
      if ('secondFactor' in joined) half.value = joined.token
      else finish(joined)
    })
  }
  const finish = (joined: Session): void => {
    enter(joined)
    navigate('/', { replace: true })
  }
  if (half.value !== null) {
    return (
      <CredentialForm title="You joined" action="Sign in" busy={busy.value} onSubmit={accept}>
        <p>Your account has a second factor. Enter its code to sign in.</p>
        <CodeField />
        {problem.value && <Problem error={problem.value} />}
      </CredentialForm>
    )
  }
  const found = looked.value
  if (found === null && problem.value?.status === 403) {
    return (
      <AloneNote title="This invitation is over">
        <Problem error={problem.value} />
        <a class="button primary" href="/sign-in">
          Sign in
        </a>
      </AloneNote>
    )
  }
  return (
    <CredentialForm title="You are invited" action="Accept" busy={busy.value || !found} onSubmit={accept}>
      {found && (
        <>
          <p>
            <Text value={found.email} /> is invited to{' '}
            <strong>
              <Text value={found.orgName} />
            </strong>{' '}
            as {found.role}.
          </p>
          {found.hasAccount ? (
            <PasswordField label="Your password" autocomplete="current-password" />
          ) : (
            <PasswordField label="Choose a password" autocomplete="new-password" isNew />
          )}
        </>
      )}
      {problem.value && <Problem error={problem.value} />}
    </CredentialForm>
  )
}
