/** First-run setup: whoever has the one-time link creates the first owner. */
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
  // Read once, because the URL loses the token as soon as it is used.
  const [hadToken] = useState(token !== '')
  if (entry.value === 'asking') return null // not known yet whether an owner exists
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
      <p class="muted">The owner has full access and can invite others. This link works once.</p>
      {!hadToken && (
        <p class="notice" role="alert">
          The token is missing from the URL. Open the complete setup link, including the part after #.
        </p>
      )}
      <EmailField />
      <PasswordField label="Password" autocomplete="new-password" isNew />
      {problem.value && (
        <Problem error={problem.value}>
          {problem.value.hint === null && isLinkInvalid(problem.value) && (
            <p>
              If an owner exists, <a href="/sign-in">sign in</a>. If not, restart Sightglass to get a new
              link.
            </p>
          )}
        </Problem>
      )}
    </CredentialForm>
  )
}

/** An owner exists, so every setup link is used or void. */
function Used() {
  const signedIn = entry.value === 'signed-in'
  return (
    <AloneNote title="This setup link was used">
      <p>Sightglass already has an owner. {signedIn ? 'You are signed in.' : 'Sign in with that account.'}</p>
      <a class="button primary" href={signedIn ? '/' : '/sign-in'}>
        {signedIn ? 'Open the dashboard' : 'Sign in'}
      </a>
      <p class="muted">
        Not you? Run <code>sightglass account list</code> on the server to see the owners. Lost password? Run{' '}
        <code>sightglass account reset-password --email EMAIL</code>.
      </p>
    </AloneNote>
  )
}

function isLinkInvalid(error: ApiError): boolean {
  return error.status === 401 || error.status === 403 || error.status === 404 || error.status === 409
}
