/** The active sign-ins of your account, and buttons that end them. */
import { Problem } from '../../../components/problem.tsx'
import { useTask } from '../../../components/task.ts'
import { Text } from '../../../components/text.tsx'
import { identityApi, type OwnSignIn } from '../../../api/identity-api.ts'
import { Moment } from '../../../components/moment.tsx'

export function SignInList({ signIns, onDone }: { signIns: OwnSignIn[]; onDone: () => void }) {
  const { busy, problem, run } = useTask()
  const act = (work: () => Promise<void>) => void run(work).then(onDone)
  return (
    <>
      <h3>Active sign-ins</h3>
      {problem.value && <Problem error={problem.value} />}
      <div class="panel table-panel" tabIndex={0} role="region" aria-label="Active sign-ins">
        <table class="key-table">
          <thead>
            <tr>
              <th scope="col">Browser</th>
              <th scope="col">IP address</th>
              <th scope="col">Signed in</th>
              <th scope="col">Last seen</th>
              <th scope="col">
                <span class="visually-hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {signIns.map((signIn) => (
              <tr key={signIn.id}>
                <th scope="row">
                  <Text value={signIn.userAgent || 'unknown'} max={44} />
                </th>
                <td>{signIn.address}</td>
                <td>
                  <Moment iso={signIn.createdAt} />
                </td>
                <td>
                  <Moment iso={signIn.lastSeenAt} />
                </td>
                <td class="actions">
                  {signIn.current ? (
                    <span class="muted">this browser</span>
                  ) : (
                    <button
                      type="button"
                      class="button"
                      onClick={() => act(() => identityApi.endSignIn(signIn.id))}
                    >
                      Sign out
                    </button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {signIns.length > 1 && (
        <button
          type="button"
          class="button"
          aria-disabled={busy.value}
          onClick={() => act(identityApi.endOtherSignIns)}
        >
          Sign out everywhere else
        </button>
      )}
    </>
  )
}
