/** Signing in. */
import './page.css'
import { useSignal } from '@preact/signals'
import { api, type ApiError } from '../../api.ts'
import { Problem } from '../../components/problem.tsx'
import { navigate, query, safeReturn } from '../../router.ts'
import { asApiError, enter, needsOwner, signInNotice } from '../../session.ts'
import { CredentialForm, EmailField, PasswordField } from './credential-form.tsx'

export function SignIn() {
  const problem = useSignal<ApiError | null>(null)
  const busy = useSignal(false)
  const submit = async (form: FormData): Promise<void> => {
    busy.value = true
    problem.value = null
    try {
      const email = String(form.get('email'))
      const found = await api.signIn({ email, password: String(form.get('password')) })
      const to = safeReturn(query.peek().get('to'))
      enter(found)
      navigate(to, { replace: true })
    } catch (error) {
      problem.value = asApiError(error)
    } finally {
      busy.value = false
    }
  }
  return (
    <CredentialForm title="Sign in" action="Sign in" busy={busy.value} onSubmit={submit}>
      {signInNotice.value !== '' && (
        <p class="notice" role="status">
          {signInNotice.value}
        </p>
      )}
      {needsOwner.value && (
        <p class="notice">
          This appliance has no owner yet. Open the set-up link that it printed where it was started; the link
          works once, for 30 minutes. Start it again to get a new one.
        </p>
      )}
      <EmailField />
      <PasswordField label="Password" autocomplete="current-password" />
      {problem.value && <Problem error={problem.value}>{signInAdvice(problem.value)}</Problem>}
    </CredentialForm>
  )
}

function signInAdvice(error: ApiError) {
  if (error.status !== 401 || error.hint !== null) return null
  return (
    <p>
      Check both and try again. If the password is lost, whoever runs the machine can make a new link with{' '}
      <code>sightglass account reset-password --email …</code>.
    </p>
  )
}
