/** Sign-in with email and password, a second factor if the account has one, or an identity provider. */
import './page.css'
import { useSignal } from '@preact/signals'
import { api, changingCookie, type ApiError, type Session } from '../../api/api.ts'
import { Problem, useTask } from '../../components/problem.tsx'
import { useRecords } from '../../query/use-query.ts'
import { navigate, query, safeReturn } from '../../app/router.ts'
import { enter, needsOwner, providerName, session, signInNotice, signOut } from '../../app/session.ts'
import { AloneNote, CodeField, CredentialForm, EmailField, PasswordField } from './credential-form.tsx'
import { Text } from '../../components/text.tsx'
import { identityApi, type OwnOrg } from '../../api/identity-api.ts'
import { SecondFactor } from '../settings/account/second-factor.tsx'

export function SignIn() {
  const { busy, problem, run } = useTask()
  const pendingToken = useSignal<string | null>(null)
  const finish = (newSession: Session): void => {
    const to = safeReturn(query.peek().get('to'))
    enter(newSession)
    navigate(to, { replace: true })
  }
  const submit = async (form: FormData): Promise<void> => {
    await run(async () => {
      if (pendingToken.value !== null) {
        finish(await api.signInWithCode({ token: pendingToken.value, code: String(form.get('code')) }))
        return
      }
      const credentials = { email: String(form.get('email')), password: String(form.get('password')) }
      const signInResult = await api.signIn(credentials)
      if ('secondFactor' in signInResult) pendingToken.value = signInResult.token
      else finish(signInResult)
    })
  }
  if (pendingToken.value !== null) {
    return (
      <CredentialForm title="Sign in" action="Continue" busy={busy.value} onSubmit={submit}>
        <CodeField />
        {problem.value && <Problem error={problem.value} />}
        <button
          type="button"
          class="button quiet"
          onClick={() => {
            pendingToken.value = null
            problem.value = null
          }}
        >
          Start over
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
          Continue with {providerName.value}
        </a>
      )}
    </CredentialForm>
  )
}

const refusals: { [reason: string]: string } = {
  unreachable: 'The identity provider does not respond. Try again, or sign in with your password.',
  failed: 'The identity provider could not confirm your identity. Try again, or sign in with your password.',
  expired: 'This sign-in expired, or began in another browser. Try again.',
  no_account: 'No account has this identity. Ask an owner for an invitation.',
}

/** In a cookie of a minute that the server sets for this page, because anyone could write it into an address. */
function reasonOfRefusal(): string {
  const value = /(?:^|; )sightglass_refusal=([^;]*)/.exec(document.cookie)?.[1] ?? ''
  try {
    return decodeURIComponent(value)
  } catch {
    return ''
  }
}

function Notices() {
  const refused = refusals[query.value.get('refused') ?? '']
  const providerReason = reasonOfRefusal()
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
          {providerReason !== '' && ` The provider says: ${providerReason}`}
        </p>
      )}
      {needsOwner.value && (
        <p class="notice">
          This appliance has no owner yet. Open the setup link in the server output. It works once and expires
          after 30 minutes. Restart the server to get a new link.
        </p>
      )}
    </>
  )
}

function signInAdvice(error: ApiError) {
  if (error.status !== 401 || error.hint !== null) return null
  return (
    <p>
      Lost password? The operator of the server can create a reset link with{' '}
      <code>sightglass account reset-password --email EMAIL</code>.
    </p>
  )
}

/** Shown to members without a second factor if the organization requires one: set it up, switch or sign out. */
export function SecondFactorNeeded() {
  const { data: orgs, error } = useRecords<OwnOrg[]>({ key: 'orgs', fetch: identityApi.orgs })
  const { problem, run } = useTask()
  const currentSession = session.value
  if (currentSession === null) return null
  const otherOrgs = (orgs.value ?? []).filter(({ id }) => id !== currentSession.org.id)
  const failure = problem.value ?? error.value
  const open = (org: OwnOrg) =>
    run(async () => enter(await changingCookie(() => identityApi.switchOrg(org.id))))
  return (
    <AloneNote title="Second factor required">
      <p>
        <strong>
          <Text value={currentSession.org.name} max={80} />
        </strong>{' '}
        requires a second factor. Set one up to continue. You need your password and an authenticator app.
      </p>
      <SecondFactor
        factor={null}
        onDone={() => undefined}
        onCodesSaved={() => void run(async () => enter(await api.session()))}
        plain
      />
      {failure && <Problem error={failure} />}
      <div class="ways-out">
        {otherOrgs.map((org) => (
          <button key={org.id} type="button" class="button quiet" onClick={() => void open(org)}>
            Open <Text value={org.name} max={40} />
          </button>
        ))}
        <button type="button" class="button quiet" onClick={() => void run(signOut)}>
          Sign out
        </button>
      </div>
      <p class="muted">
        Signed in as <Text value={currentSession.account.email} max={80} />.
      </p>
    </AloneNote>
  )
}
