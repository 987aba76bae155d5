/** Sets a new password with a one-time link. */
import './page.css'
import { useSignal } from '@preact/signals'
import { api, type ApiError } from '../../api/api.ts'
import { Problem } from '../../components/problem.tsx'
import { navigate, place } from '../../app/router.ts'
import { asApiError, entry, session, signInNotice } from '../../app/session.ts'
import { CredentialForm, PasswordField } from './credential-form.tsx'

export function ResetPassword() {
  const problem = useSignal<ApiError | null>(null)
  const busy = useSignal(false)
  const submit = async (form: FormData): Promise<void> => {
    busy.value = true
    problem.value = null
    try {
      await api.resetPassword({ token: place.peek().hash.slice(1), password: String(form.get('password')) })
      // A new password ends every sign-in of the account, also the one of this browser.
      session.value = null
      entry.value = 'signed-out'
      signInNotice.value = 'Password changed. Sign in with the new password.'
      navigate('/sign-in', { replace: true })
    } catch (error) {
      problem.value = asApiError(error)
    } finally {
      busy.value = false
    }
  }
  return (
    <CredentialForm title="Choose a new password" action="Set password" busy={busy.value} onSubmit={submit}>
      <p class="muted">This link works once. You are signed out everywhere else.</p>
      <PasswordField label="New password" autocomplete="new-password" isNew />
      {problem.value && (
        <Problem error={problem.value}>
          {problem.value.hint === null && problem.value.status !== 400 && (
            <p>
              The link may have been used or expired. The operator of the server can create another with{' '}
              <code>sightglass account reset-password --email EMAIL</code>.
            </p>
          )}
        </Problem>
      )}
    </CredentialForm>
  )
}
