/** Settings, Webhooks: the alert rules with their open alerts, and the dialogs that add, edit and delete them. */
import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { Problem } from '../../../components/problem.tsx'
import { Text } from '../../../components/text.tsx'
import {
  webhookApi,
  type Endpoint,
  type Incident,
  type Rule,
  type RuleKind,
  type RuleNumbers,
} from '../../../api/webhook-api.ts'
import { Choice, Field, FormDialog, textOf } from '../../../components/dialog.tsx'
import { RecordTable, RowButton } from '../../../components/record-table.tsx'
import { counted } from '../../../text/format.ts'
import { useRecords } from '../../../query/use-query.ts'

/** The labels of alert rules, and the numbers that each kind of rule has. */
export const ruleNames: { readonly [kind in RuleKind]: string } = {
  new_vendor: 'New vendor',
  blocked_share: 'Blocked share',
  tool_error_rate: 'Tool error rate',
  silence: 'Silence',
  key_leaked: 'Leaked key',
}

type NumberName = 'threshold' | 'minutes' | 'eventsMin'

const ruleNumbers: { readonly [kind in RuleKind]: readonly NumberName[] } = {
  new_vendor: [],
  blocked_share: ['threshold', 'eventsMin'],
  tool_error_rate: ['threshold', 'eventsMin'],
  silence: ['minutes'],
  key_leaked: [],
}

export function isRuleKind(text: string): text is RuleKind {
  return Object.hasOwn(ruleNames, text)
}

/** The condition: "more than 50 % of events in the last hour are blocked, minimum 20 events". */
export function ruleCondition({
  kind,
  threshold,
  minutes,
  eventsMin,
}: Pick<Rule, 'kind' | keyof RuleNumbers>): string {
  const share = `more than ${percent(threshold)} %`
  switch (kind) {
    case 'new_vendor':
      return 'an event has a vendor not seen before'
    case 'blocked_share':
      return `${share} of events in the last hour are blocked, minimum ${counted(eventsMin ?? 0, 'event')}`
    case 'tool_error_rate':
      return `${share} of a tool’s calls in the last hour fail, minimum ${counted(eventsMin ?? 0, 'call')}`
    case 'silence':
      return `no events for ${counted(minutes ?? 0, 'minute')}`
    case 'key_leaked':
      return 'an ingest or secret key is sent from a browser'
  }
}

/** A share as the form and the sentence show it: 0.125 is 12.5. */
export function percent(share: number | null): number {
  return Math.round((share ?? 0) * 100_000) / 1_000
}

/** The share of a percentage, rounded so that a division leaves no extra digits. */
export function shareOf(percentage: number): number {
  return Math.round(percentage * 1_000) / 100_000
}

interface RulesProps {
  endpoints: Endpoint[] // a new list reloads the rules, because deleting an endpoint deletes its rules
  allowed: boolean
}

const rulesQuery = {
  key: 'webhook rules',
  async fetch(signal: AbortSignal): Promise<{ rules: Rule[]; incidents: Incident[] }> {
    const [rules, incidents] = await Promise.all([webhookApi.rules(signal), webhookApi.incidents(signal)])
    return { rules, incidents }
  },
}

export function Rules({ endpoints, allowed }: RulesProps) {
  const { data: known, error: problem, refetch } = useRecords(rulesQuery)
  const editing = useSignal<Rule | 'new' | null>(null)
  const deleting = useSignal<Rule | null>(null)
  const seen = useRef(endpoints)
  useEffect(() => {
    if (seen.current !== endpoints) refetch()
    seen.current = endpoints
  }, [endpoints])
  const rules = known.value?.rules ?? []
  return (
    <div class="rules">
      <h3>Alert rules</h3>
      <p>
        A rule sends one message when an alert opens and one when it resolves. Endpoint filters do not apply
        to alerts. Alerts are listed on <a href="/webhooks">Webhooks</a>.
      </p>
      {problem.value && <Problem error={problem.value} onRetry={refetch} />}
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
          onDone={refetch}
          onClose={() => (editing.value = null)}
        />
      )}
      {deleting.value !== null && (
        <DeleteDialog rule={deleting.value} onDone={refetch} onClose={() => (deleting.value = null)} />
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

interface RuleDialogProps {
  rule: Rule | null // null: a new one
  endpoints: Endpoint[]
  onDone: () => void
  onClose: () => void
}

const kinds = Object.keys(ruleNames).filter(isRuleKind)

/** Adds an alert rule, or edits the limits of one. */
function RuleDialog({ rule, endpoints, onDone, onClose }: RuleDialogProps) {
  const kind = useSignal<RuleKind>(rule?.kind ?? 'blocked_share')
  const save = async (form: FormData): Promise<void> => {
    const numbers = numbersOf(kind.peek(), form)
    if (rule === null) await webhookApi.createRule(kind.peek(), textOf(form, 'endpointId'), numbers)
    else await webhookApi.changeRule(rule.id, numbers)
    onDone()
  }
  const pick = (text: string): void => {
    if (isRuleKind(text)) kind.value = text
  }
  return (
    <FormDialog
      title={rule === null ? 'Add alert rule' : `Edit alert rule: ${ruleNames[rule.kind]}`}
      action={rule === null ? 'Add alert rule' : 'Save'}
      onSubmit={save}
      onClose={onClose}
    >
      {rule === null && (
        <>
          <Choice
            name="kind"
            label="Alert on"
            options={kinds.map((value) => ({ value, text: ruleNames[value] }))}
            value={kind.value}
            onChange={pick}
          />
          <Choice
            name="endpointId"
            label="Notify"
            options={endpoints.map(({ id, label, url }) => ({ value: id, text: label || url }))}
          />
        </>
      )}
      {ruleNumbers[kind.value].map((name) => (
        <NumberField key={name} name={name} rule={rule} />
      ))}
    </FormDialog>
  )
}

interface NumberInput {
  label: string
  min: number
  max: number
  step: number | 'any'
  initial: number
}

const fields: { readonly [name in NumberName]: NumberInput } = {
  threshold: {
    label: 'Threshold (percent, last hour)',
    min: 0,
    max: 99,
    step: 'any',
    initial: 50,
  },
  eventsMin: {
    label: 'Minimum events (ignored below this)',
    ...{ min: 1, max: 1e9, step: 1, initial: 20 },
  },
  minutes: {
    label: 'Minutes without events (1 to 10,080)',
    ...{ min: 1, max: 10_080, step: 1, initial: 30 },
  },
}

function NumberField({ name, rule }: { name: NumberName; rule: Rule | null }) {
  const { label, min, max, step, initial } = fields[name]
  const own = rule?.[name] ?? null
  const shown = own === null ? initial : name === 'threshold' ? percent(own) : own
  const bounds = { min, max, step, required: true }
  return <Field name={name} label={label} type="number" value={String(shown)} {...bounds} />
}

function numbersOf(kind: RuleKind, form: FormData): Partial<RuleNumbers> {
  const given = ruleNumbers[kind].map((name): [NumberName, number] => {
    const value = Number(textOf(form, name))
    return [name, name === 'threshold' ? shareOf(value) : value]
  })
  return Object.fromEntries(given)
}
