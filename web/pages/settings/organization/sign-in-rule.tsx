/** Whether the members of the organization need a second factor, and who has none yet. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { Problem } from '../../../components/problem.tsx'
import { useTask } from '../../../components/task.ts'
import { Text } from '../../../components/text.tsx'
import { counted } from '../../../text/format.ts'
import { identityApi, type SignInRule } from '../../../api/identity-api.ts'
import { FormDialog } from '../../../components/form-dialog.tsx'

const namedMax = 10

export function SignInRuleSection() {
  const rule = useSignal<SignInRule | null>(null)
  const asking = useSignal(false)
  const { problem, run } = useTask()
  useEffect(() => void run(async () => void (rule.value = await identityApi.signInRule())), [])
  const now = rule.value
  return (
    <>
      <h3>Signing in</h3>
      {problem.value && <Problem error={problem.value} />}
      {now && (
        <>
          <p>
            {now.secondFactorRequired
              ? 'A second factor is required. Members without one set it up before they see data.'
              : 'A second factor is optional for members.'}{' '}
            {now.lacking.length === 0
              ? 'Every member has one.'
              : `${counted(now.lacking.length, 'member has', 'members have')} none.`}
          </p>
          <p>
            <button type="button" class="button" onClick={() => (asking.value = true)}>
              {now.secondFactorRequired ? 'Make it optional' : 'Require a second factor'}
            </button>
          </p>
        </>
      )}
      {now && asking.value && (
        <ChangeDialog
          rule={now}
          onDone={(changed) => (rule.value = changed)}
          onClose={() => (asking.value = false)}
        />
      )}
    </>
  )
}

interface ChangeDialogProps {
  rule: SignInRule
  onDone: (changed: SignInRule) => void
  onClose: () => void
}

function ChangeDialog({ rule, onDone, onClose }: ChangeDialogProps) {
  const next = !rule.secondFactorRequired
  const submit = async (): Promise<void> => onDone(await identityApi.changeSignInRule(next))
  return (
    <FormDialog
      title={next ? 'Require a second factor' : 'Make the second factor optional'}
      action={next ? 'Require it' : 'Make it optional'}
      onSubmit={submit}
      onClose={onClose}
    >
      {next ? <Consequences rule={rule} /> : <p>Members may then sign in with their password alone.</p>}
    </FormDialog>
  )
}

function Consequences({ rule: { lacking } }: { rule: SignInRule }) {
  return (
    <>
      <p>
        Members without a second factor set one up when they next open the dashboard. Until then they see no
        data of this organization. Signing in through an identity provider counts as having one.
      </p>
      {lacking.length > 0 && (
        <>
          <p>{counted(lacking.length, 'member has', 'members have')} none now:</p>
          <ul aria-label="Members without a second factor">
            {lacking.slice(0, namedMax).map(({ id, email }) => (
              <li key={id}>
                <Text value={email} max={60} />
              </li>
            ))}
            {lacking.length > namedMax && <li>and {lacking.length - namedMax} more</li>}
          </ul>
        </>
      )}
    </>
  )
}
