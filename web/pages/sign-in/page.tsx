/** Signing in: e-mail and password, then a code where a second factor is set; or through the network's provider. */
import './page.css'
import { useSignal } from '@preact/signals'
import { api, type ApiError, type Session } from '../../api/api.ts'
import { Problem } from '../../components/problem.tsx'
import { navigate, query, safeReturn } from '../../app/router.ts'
import { asApiError, enter, needsOwner, providerName, signInNotice } from '../../app/session.ts'
import { CodeField } from './code-form.tsx'
import { CredentialForm, EmailField, PasswordField } from './credential-form.tsx'

export function SignIn() {
  const problem = useSignal<ApiError | null>(null)
  const busy = useSignal(false)
  const half = useSignal<string | null>(null)
  const finish = (found: Session): void => {
    const to = safeReturn(query.peek().get('to'))
    enter(found)
    navigate(to, { replace: true })
  }
  const submit = async (form: FormData): Promise<void> => {
    busy.value = true
    problem.value = null
    try {
      if (half.value !== null) {
        finish(await api.signInWithCode({ token: half.value, code: String(form.get('code')) }))
        return
      }
      const who = { email: String(form.get('email')), password: String(form.get('password')) }
      const found = await api.signIn(who)
      if ('secondFactor' in found) half.value = found.token
      else finish(found)
    } catch (error) {
      problem.value = asApiError(error)
    } finally {
      busy.value = false
    }
  }
  if (half.value !== null) {
    return (
      <CredentialForm title="Sign in" action="Go on" busy={busy.value} onSubmit={submit}>
        <CodeField />
        {problem.value && <Problem error={problem.value} />}
        <button
          type="button"
          class="button quiet"
          onClick={() => {
            half.value = null
            problem.value = null
          }}
        >
          Begin again
        </button>
      </CredentialForm>
    )
  }
  return (
    <CredentialForm title="Sign in" action="Sign in" busy={busy.value} onSubmit={submit}>
      <Notices />
      <EmailField />
      <PasswordField label="Password" autocomplete="current-password" />
      {problem.value && <Problem error={problem.value}>{signInAdvice(problem.value)}</Problem>}
      {providerName.value !== null && (
        <a class="button" href="/api/oidc/start" data-native>
          Go on with {providerName.value}
        </a>
      )}
    </CredentialForm>
  )
}

const refusals: { [why: string]: string } = {
  unreachable: 'The identity provider does not answer. Try again, or sign in with your password.',
  failed: 'The identity provider could not say who you are. Try again, or sign in with your password.',
  no_account: 'Nobody with this identity has an account here. Ask an owner for an invitation first.',
}

function Notices() {
  const refused = refusals[query.value.get('refused') ?? '']
  return (
    <>
      {signInNotice.value !== '' && (
        <p class="notice" role="status">
          {signInNotice.value}
        </p>
      )}
      {refused !== undefined && (
        <p class="notice" role="alert">
          {refused}
        </p>
      )}
      {needsOwner.value && (
        <p class="notice">
          This appliance has no owner yet. Open the set-up link that it printed where it was started; the link
          works once, for 30 minutes. Start it again to get a new one.
        </p>
      )}
    </>
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
