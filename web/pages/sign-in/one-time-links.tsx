/** The pages behind one-time links: setup of the first owner, invitation and password reset. */
import './page.css'
import { useSignal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import { api, type ApiError, type Role, type Session } from '../../api/api.ts'
import { Problem, useTask } from '../../components/problem.tsx'
import { navigate, place } from '../../app/router.ts'
import { enter, entry, needsOwner, session, signInNotice } from '../../app/session.ts'
import { AloneNote, CodeField, CredentialForm, EmailField, PasswordField } from './credential-form.tsx'
import { Text } from '../../components/text.tsx'
import { identityApi } from '../../api/identity-api.ts'

/** First-run setup: the person with the link creates the first owner. */
export function Setup() {
  const { busy, problem, run } = useTask()
  const token = place.value.hash.slice(1)
  // Read once, because the URL loses the token as soon as it is used.
  const [hadToken] = useState(token !== '')
  if (entry.value === 'asking') return null // whether an owner exists is not known yet
  if (!needsOwner.value && entry.value !== 'failed' && !busy.value) return <Used />
  const submit = async (form: FormData): Promise<void> => {
    await run(async () => {
      const email = String(form.get('email'))
      const newSession = await api.createOwner({ token, email, password: String(form.get('password')) })
      enter(newSession)
      navigate('/', { replace: true })
    })
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

interface InvitationView {
  email: string
  role: Role
  orgName: string
  hasAccount: boolean
}

/** Accepts an invitation link: shows the organization and role, and requests a password. */
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
  const invitationView = invitation.value
  if (invitationView === null && problem.value?.status === 403) {
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
      busy={busy.value || !invitationView}
      onSubmit={accept}
    >
      {invitationView && <Invited invitation={invitationView} />}
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

/** Sets a new password with a one-time link. */
export function ResetPassword() {
  const { busy, problem, run } = useTask()
  const submit = async (form: FormData): Promise<void> => {
    await run(async () => {
      await api.resetPassword({ token: place.peek().hash.slice(1), password: String(form.get('password')) })
      // A new password ends every sign-in of the account, also the one of this browser.
      session.value = null
      entry.value = 'signed-out'
      signInNotice.value = 'Password changed. Sign in with the new password.'
      navigate('/sign-in', { replace: true })
    })
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
