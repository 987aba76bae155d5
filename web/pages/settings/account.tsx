/** Your account: who you are here, and the way out. */
import { useSignal } from '@preact/signals'
import type { ApiError } from '../../api.ts'
import { Problem } from '../../components/problem.tsx'
import { Text } from '../../components/text.tsx'
import { asApiError, session, signOut } from '../../session.ts'

export function Account() {
  const problem = useSignal<ApiError | null>(null)
  const who = session.value
  if (!who) return null
  return (
    <section class="settings-section">
      <dl class="settings-facts">
        <dt>Email</dt>
        <dd>
          <Text value={who.account.email} />
        </dd>
        <dt>Organization</dt>
        <dd>
          <Text value={who.org.name} /> <span class="muted">({who.org.slug})</span>
        </dd>
        <dt>Role</dt>
        <dd>
          {who.role}
          {who.account.operator && ', operator of this appliance'}
        </dd>
      </dl>
      <button
        type="button"
        class="button"
        onClick={() => signOut().catch((error: unknown) => (problem.value = asApiError(error)))}
      >
        Sign out of this browser
      </button>
      {problem.value && <Problem error={problem.value} />}
      <p class="muted">
        To change the password, have <code>sightglass account reset-password --email …</code> make a link on
        the machine.
      </p>
    </section>
  )
}
