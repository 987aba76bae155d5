/** Settings → Webhooks, the rules that speak: which are there, what each has open, adding, changing, removing. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { Problem } from '../../../components/problem.tsx'
import { useTask } from '../../../components/task.ts'
import { Text } from '../../../components/text.tsx'
import { type Endpoint, type Incident, type Rule, webhookApi } from '../../../api/webhook-api.ts'
import { FormDialog } from '../../../components/form-dialog.tsx'
import { RuleDialog } from './rule-dialog.tsx'
import { ruleNames, ruleNumbers, ruleSentence } from './rule-labels.ts'

interface RulesProps {
  endpoints: Endpoint[] // anew after one came or went, which takes its rules along
  allowed: boolean
}

export function Rules({ endpoints, allowed }: RulesProps) {
  const known = useSignal<{ rules: Rule[]; incidents: Incident[] } | null>(null)
  const editing = useSignal<Rule | 'new' | null>(null)
  const removing = useSignal<Rule | null>(null)
  const { problem, run } = useTask()
  const load = () =>
    run(async () => {
      const [found, incidents] = await Promise.all([webhookApi.rules(), webhookApi.incidents()])
      known.value = { rules: found, incidents }
    })
  useEffect(() => void load(), [endpoints])
  const rules = known.value?.rules ?? []
  return (
    <div class="rules">
      <h3>Rules that speak</h3>
      <p>
        A rule sends its endpoint one message when something begins and one when it is over, whatever the
        endpoint’s filters are. What is open and what is over is on the page <a href="/webhooks">Webhooks</a>.
      </p>
      {problem.value && <Problem error={problem.value} onRetry={() => void load()} />}
      {allowed && endpoints.length > 0 && (
        <button type="button" class="button" aria-haspopup="dialog" onClick={() => (editing.value = 'new')}>
          Add rule
        </button>
      )}
      {known.value !== null && rules.length === 0 && (
        <p class="muted">
          {endpoints.length === 0 ? 'A rule needs an endpoint to tell.' : 'There is no rule yet.'}
        </p>
      )}
      {known.value !== null && rules.length > 0 && (
        <RuleTable
          {...{ endpoints, allowed, ...known.value }}
          onChange={(rule) => (editing.value = rule)}
          onRemove={(rule) => (removing.value = rule)}
        />
      )}
      {editing.value !== null && (
        <RuleDialog
          rule={editing.value === 'new' ? null : editing.value}
          endpoints={endpoints}
          onDone={() => void load()}
          onClose={() => (editing.value = null)}
        />
      )}
      {removing.value !== null && (
        <RemoveDialog
          rule={removing.value}
          onDone={() => void load()}
          onClose={() => (removing.value = null)}
        />
      )}
    </div>
  )
}

interface RuleTableProps extends RulesProps {
  rules: Rule[]
  incidents: Incident[]
  onChange: (rule: Rule) => void
  onRemove: (rule: Rule) => void
}

function RuleTable({ rules, endpoints, incidents, allowed, onChange, onRemove }: RuleTableProps) {
  const names = new Map(endpoints.map(({ id, label, url }) => [id, label || url]))
  return (
    <div class="panel table-panel" tabIndex={0} role="region" aria-label="Rules">
      <table class="key-table">
        <thead>
          <tr>
            <th scope="col">Speaks of</th>
            <th scope="col">When</th>
            <th scope="col">Tells</th>
            <th scope="col">State</th>
            {allowed && (
              <th scope="col">
                <span class="visually-hidden">Change</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {rules.map((rule) => (
            <tr key={rule.id}>
              <th scope="row">{ruleNames[rule.kind]}</th>
              <td class="rule-when">{ruleSentence(rule)}</td>
              <td>
                <Text value={names.get(rule.endpointId) ?? rule.endpointId} max={32} />
              </td>
              <td>
                <RuleState open={openOf(rule, incidents)} />
              </td>
              {allowed && <RuleActs {...{ rule, onChange, onRemove }} />}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function openOf(rule: Rule, incidents: Incident[]): number {
  return incidents.filter(({ ruleId, resolvedAt }) => ruleId === rule.id && resolvedAt === null).length
}

function RuleState({ open }: { open: number }) {
  return open === 0 ? <span class="chip plain">quiet</span> : <span class="chip block">{open} open</span>
}

function RuleActs({
  rule,
  onChange,
  onRemove,
}: { rule: Rule } & Pick<RuleTableProps, 'onChange' | 'onRemove'>) {
  const hidden = <span class="visually-hidden"> {ruleNames[rule.kind]}</span>
  return (
    <td class="actions">
      {ruleNumbers[rule.kind].length > 0 && (
        <button type="button" class="button" onClick={() => onChange(rule)}>
          Change{hidden}
        </button>
      )}{' '}
      <button type="button" class="button" onClick={() => onRemove(rule)}>
        Remove{hidden}
      </button>
    </td>
  )
}

function RemoveDialog({ rule, onDone, onClose }: { rule: Rule; onDone: () => void; onClose: () => void }) {
  const remove = async (): Promise<void> => {
    await webhookApi.deleteRule(rule.id)
    onDone()
  }
  return (
    <FormDialog title="Remove rule" action="Remove rule" danger onSubmit={remove} onClose={onClose}>
      <p>
        Remove the rule that speaks when <strong>{ruleSentence(rule)}</strong>?
      </p>
      <p>What it has open ends without a message. This cannot be undone.</p>
    </FormDialog>
  )
}
