/** Settings, Webhooks: the alert rules with their open alerts, and the dialogs that add, edit and delete them. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { Problem } from '../../../components/problem.tsx'
import { useTask } from '../../../components/problem.tsx'
import { Text } from '../../../components/text.tsx'
import { type Endpoint, type Incident, type Rule, webhookApi } from '../../../api/webhook-api.ts'
import { FormDialog } from '../../../components/dialog.tsx'
import { RecordTable, RowButton } from '../../../components/record-table.tsx'
import { RuleDialog } from './rule-dialog.tsx'
import { ruleNames, ruleNumbers, ruleCondition } from './rule-labels.ts'

interface RulesProps {
  endpoints: Endpoint[] // a new list reloads the rules, because deleting an endpoint deletes its rules
  allowed: boolean
}

export function Rules({ endpoints, allowed }: RulesProps) {
  const known = useSignal<{ rules: Rule[]; incidents: Incident[] } | null>(null)
  const editing = useSignal<Rule | 'new' | null>(null)
  const deleting = useSignal<Rule | null>(null)
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
      <h3>Alert rules</h3>
      <p>
        A rule sends one message when an alert opens and one when it resolves. Endpoint filters do not apply
        to alerts. Alerts are listed on <a href="/webhooks">Webhooks</a>.
      </p>
      {problem.value && <Problem error={problem.value} onRetry={() => void load()} />}
      {allowed && endpoints.length > 0 && (
        <button type="button" class="button" aria-haspopup="dialog" onClick={() => (editing.value = 'new')}>
          Add alert rule
        </button>
      )}
      {known.value !== null && rules.length === 0 && (
        <p class="muted">
          {endpoints.length === 0
            ? 'Add an endpoint before you create an alert rule.'
            : 'No alert rules yet. Add one to receive alerts.'}
        </p>
      )}
      {known.value !== null && rules.length > 0 && (
        <RuleTable
          {...{ endpoints, allowed, ...known.value }}
          onEdit={(rule) => (editing.value = rule)}
          onDelete={(rule) => (deleting.value = rule)}
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
      {deleting.value !== null && (
        <DeleteDialog
          rule={deleting.value}
          onDone={() => void load()}
          onClose={() => (deleting.value = null)}
        />
      )}
    </div>
  )
}

interface RuleTableProps extends RulesProps {
  rules: Rule[]
  incidents: Incident[]
  onEdit: (rule: Rule) => void
  onDelete: (rule: Rule) => void
}

function RuleTable({ rules, endpoints, incidents, allowed, onEdit, onDelete }: RuleTableProps) {
  const names = new Map(endpoints.map(({ id, label, url }) => [id, label || url]))
  return (
    <RecordTable
      label="Alert rules"
      rows={rules}
      keyOf={({ id }) => id}
      columns={[
        { name: 'Alert on', cell: ({ kind }) => ruleNames[kind] },
        { name: 'Condition', class: 'rule-when', cell: ruleCondition },
        {
          name: 'Notify',
          cell: ({ endpointId }) => <Text value={names.get(endpointId) ?? endpointId} max={32} />,
        },
        { name: 'State', cell: (rule) => <RuleState open={openOf(rule, incidents)} /> },
      ]}
      actions={
        allowed
          ? (rule) => (
              <>
                {ruleNumbers[rule.kind].length > 0 && (
                  <RowButton label="Edit" of={ruleNames[rule.kind]} onClick={() => onEdit(rule)} />
                )}
                <RowButton label="Delete" of={ruleNames[rule.kind]} onClick={() => onDelete(rule)} />
              </>
            )
          : null
      }
    />
  )
}

function openOf(rule: Rule, incidents: Incident[]): number {
  return incidents.filter(({ ruleId, resolvedAt }) => ruleId === rule.id && resolvedAt === null).length
}

function RuleState({ open }: { open: number }) {
  return open === 0 ? <span class="chip plain">none open</span> : <span class="chip block">{open} open</span>
}

function DeleteDialog({ rule, onDone, onClose }: { rule: Rule; onDone: () => void; onClose: () => void }) {
  const submit = async (): Promise<void> => {
    await webhookApi.deleteRule(rule.id)
    onDone()
  }
  return (
    <FormDialog
      title="Delete alert rule"
      action="Delete alert rule"
      danger
      onSubmit={submit}
      onClose={onClose}
    >
      <p>
        Delete the rule <strong>{ruleNames[rule.kind]}</strong> ({ruleCondition(rule)})?
      </p>
      <p>Its open alerts close without a message. This cannot be undone.</p>
    </FormDialog>
  )
}
