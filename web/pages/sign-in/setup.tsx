/** Set-up: the holder of the one-time link becomes the first owner. */
import './page.css'
import { useSignal } from '@preact/signals'
import { useState } from 'preact/hooks'
import { api, type ApiError } from '../../api/api.ts'
import { Problem } from '../../components/problem.tsx'
import { navigate, place } from '../../app/router.ts'
import { asApiError, enter, entry, needsOwner } from '../../app/session.ts'
import { AloneNote, CredentialForm, EmailField, PasswordField } from './credential-form.tsx'

export function Setup() {
  const problem = useSignal<ApiError | null>(null)
  const busy = useSignal(false)
  const token = place.value.hash.slice(1)
  // Whether there was a token is decided once: the address loses it as soon as it is used.
  const [hadToken] = useState(token !== '')
  if (entry.value === 'asking') return null // whether there is an owner is not known yet
  if (!needsOwner.value && entry.value !== 'failed' && !busy.value) return <Used />
  const submit = async (form: FormData): Promise<void> => {
    busy.value = true
    problem.value = null
    try {
      const email = String(form.get('email'))
      const found = await api.createOwner({ token, email, password: String(form.get('password')) })
      enter(found)
      navigate('/', { replace: true })
    } catch (error) {
      problem.value = asApiError(error)
    } finally {
      busy.value = false
    }
  }
  return (
    <CredentialForm title="Create the first owner" action="Create owner" busy={busy.value} onSubmit={submit}>
      <p class="muted">The owner sees everything, makes keys and lets others in. This link works once.</p>
      {!hadToken && (
        <p class="notice" role="alert">
          This address lacks its token. Open the whole set-up link, with everything after the # sign, as it
          was printed.
        </p>
      )}
      <EmailField />
      <PasswordField label="Password" autocomplete="new-password" isNew />
      {problem.value && (
        <Problem error={problem.value}>
          {problem.value.hint === null && linkIsDead(problem.value) && (
            <p>
              If an owner exists already, <a href="/sign-in">sign in</a>. If not, start Sightglass again to
              get a new link.
            </p>
          )}
        </Problem>
      )}
    </CredentialForm>
  )
}

/** There is an owner, so every set-up link is used or void. */
function Used() {
  const signedIn = entry.value === 'signed-in'
  return (
    <AloneNote title="This set-up link was used">
      <p>Sightglass has its first owner. {signedIn ? 'You are signed in.' : 'Sign in with that account.'}</p>
      <a class="button primary" href={signedIn ? '/' : '/sign-in'}>
        {signedIn ? 'Open the dashboard' : 'Sign in'}
      </a>
      <p class="muted">
        Was it not you? Run <code>sightglass account list</code> on the machine to see who owns it. A lost
        password: <code>sightglass account reset-password --email …</code>
      </p>
    </AloneNote>
  )
}

function linkIsDead(error: ApiError): boolean {
  return error.status === 401 || error.status === 403 || error.status === 404 || error.status === 409
}
