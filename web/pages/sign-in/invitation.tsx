/** An invitation by one-time link: what it is to, and the password that makes it one's own. */
import './page.css'
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Role } from '../../api.ts'
import { Problem } from '../../components/problem.tsx'
import { useTask } from '../../components/task.ts'
import { Text } from '../../components/text.tsx'
import { identityApi } from '../../identity-api.ts'
import { navigate, place } from '../../router.ts'
import { entry, session, signInNotice } from '../../session.ts'
import { CredentialForm, PasswordField } from './credential-form.tsx'

interface Looked {
  email: string
  role: Role
  orgName: string
  hasAccount: boolean
}

export function AcceptInvitation() {
  const looked = useSignal<Looked | null>(null)
  const { busy, problem, run } = useTask()
  const token = place.value.hash.slice(1)
  useEffect(() => void run(async () => void (looked.value = await identityApi.lookAtInvitation(token))), [])
  const accept = async (form: FormData): Promise<void> => {
    const done = await run(async () => {
      await identityApi.acceptInvitation({ token, password: String(form.get('password')) })
    })
    if (!done) return
    // Somebody else may be signed in in this browser; the invited person signs in as themselves.
    session.value = null
    entry.value = 'signed-out'
    signInNotice.value = 'You are in. Sign in to go on.'
    navigate('/sign-in', { replace: true })
  }
  const found = looked.value
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
