/** The sign-in policy of the organization: whether members need a second factor, and who has none. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { Problem } from '../../../components/problem.tsx'
import { useTask } from '../../../components/problem.tsx'
import { Text } from '../../../components/text.tsx'
import { counted } from '../../../text/format.ts'
import { identityApi, type SignInRule } from '../../../api/identity-api.ts'
import { FormDialog } from '../../../components/dialog.tsx'

const namedMax = 10

export function SignInRuleSection() {
  const rule = useSignal<SignInRule | null>(null)
  const changing = useSignal(false)
  const { problem, run } = useTask()
  useEffect(() => void run(async () => void (rule.value = await identityApi.signInRule())), [])
  const current = rule.value
  return (
    <>
      <h3>Sign-in policy</h3>
      {problem.value && <Problem error={problem.value} />}
      {current && (
        <>
          <p>
            {current.secondFactorRequired
              ? 'A second factor is required. Members without one must set it up before they see data.'
              : 'A second factor is optional.'}{' '}
            {current.lacking.length === 0
              ? 'Every member has one.'
              : `${counted(current.lacking.length, 'member has', 'members have')} none.`}
          </p>
          <p>
            <button type="button" class="button" onClick={() => (changing.value = true)}>
              {current.secondFactorRequired ? 'Make it optional' : 'Require a second factor'}
            </button>
          </p>
        </>
      )}
      {current && changing.value && (
        <ChangeDialog
          rule={current}
          onDone={(changed) => (rule.value = changed)}
          onClose={() => (changing.value = false)}
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
      {next ? <Consequences rule={rule} /> : <p>Members can sign in with their password alone.</p>}
    </FormDialog>
  )
}

function Consequences({ rule: { lacking } }: { rule: SignInRule }) {
  return (
    <>
      <p>
        Members without a second factor must set one up the next time they open the dashboard. Until then they
        see no data of this organization. Sign-in through an identity provider counts as a second factor.
      </p>
      {lacking.length > 0 && (
        <>
          <p>{counted(lacking.length, 'member has', 'members have')} none:</p>
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
