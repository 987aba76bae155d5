/** Shown to members without a second factor if the organization requires one: set it up, switch or sign out. */
import './page.css'
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { api, changingCookie } from '../../api/api.ts'
import { Problem } from '../../components/problem.tsx'
import { useTask } from '../../components/task.ts'
import { Text } from '../../components/text.tsx'
import { identityApi, type OwnOrg } from '../../api/identity-api.ts'
import { enter, session, signOut } from '../../app/session.ts'
import { SecondFactor } from '../settings/account/second-factor.tsx'
import { AloneNote } from './credential-form.tsx'

export function SecondFactorNeeded() {
  const others = useSignal<OwnOrg[]>([])
  const { problem, run } = useTask()
  const who = session.value
  useEffect(() => {
    void run(async () => {
      others.value = (await identityApi.orgs()).filter(({ id }) => id !== session.peek()?.org.id)
    })
  }, [])
  if (who === null) return null
  const open = (org: OwnOrg) =>
    run(async () => enter(await changingCookie(() => identityApi.switchOrg(org.id))))
  return (
    <AloneNote title="Second factor required">
      <p>
        <strong>
          <Text value={who.org.name} max={80} />
        </strong>{' '}
        requires a second factor. Set one up to continue. You need your password and an authenticator app.
      </p>
      <SecondFactor
        factor={null}
        onDone={() => undefined}
        onCodesSaved={() => void run(async () => enter(await api.session()))}
        plain
      />
      {problem.value && <Problem error={problem.value} />}
      <div class="ways-out">
        {others.value.map((org) => (
          <button key={org.id} type="button" class="button quiet" onClick={() => void open(org)}>
            Open <Text value={org.name} max={40} />
          </button>
        ))}
        <button type="button" class="button quiet" onClick={() => void run(signOut)}>
          Sign out
        </button>
      </div>
      <p class="muted">
        Signed in as <Text value={who.account.email} max={80} />.
      </p>
    </AloneNote>
  )
}
