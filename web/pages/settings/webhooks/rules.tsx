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
  type RuleSettings,
} from '../../../api/webhook-api.ts'
import { Choice, Field, FormDialog, textOf } from '../../../components/dialog.tsx'
import { RecordTable, RowButton } from '../../../components/record-table.tsx'
import { counted, shortTime } from '../../../text/format.ts'
import { isoTime, now } from '../../../app/clock.ts'
import { Backtest } from './backtest.tsx'
import { MeasureFields } from './measure-fields.tsx'
import { definitionOf, measureCondition, presetOf } from './measure-rule.ts'
import { useRecords } from '../../../query/use-query.ts'

/** The labels of alert rules, and the numbers that each kind of rule has. */
export const ruleNames: { readonly [kind in RuleKind]: string } = {
  measure: 'A measure',
  new_vendor: 'New vendor',
  blocked_share: 'Blocked share',
  tool_error_rate: 'Tool error rate',
  silence: 'Silence',
  key_leaked: 'Leaked key',
}

type NumberName = 'threshold' | 'minutes' | 'eventsMin'

const ruleNumbers: { readonly [kind in RuleKind]: readonly NumberName[] } = {
  measure: [],
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
export function ruleCondition(rule: Pick<Rule, 'kind' | keyof RuleNumbers> & Partial<Rule>): string {
  const { kind, threshold, minutes, eventsMin } = rule
  const share = `more than ${percent(threshold)} %`
  switch (kind) {
    case 'measure':
      return measureCondition(rule)
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
  const { data: ruleRecords, error: problem, refetch } = useRecords(rulesQuery)
  const editing = useSignal<Rule | 'new' | null>(null)
  const deleting = useSignal<Rule | null>(null)
  const silencing = useSignal<Rule | null>(null)
  const seenEndpoints = useRef(endpoints)
  useEffect(() => {
    if (seenEndpoints.current !== endpoints) refetch()
    seenEndpoints.current = endpoints
  }, [endpoints])
  const rules = ruleRecords.value?.rules ?? []
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
      {ruleRecords.value !== null && rules.length === 0 && (
        <p class="muted">
          {endpoints.length === 0
            ? 'Add an endpoint before you create an alert rule.'
            : 'No alert rules yet. Add one to receive alerts.'}
        </p>
      )}
      {ruleRecords.value !== null && rules.length > 0 && (
        <RuleTable
          endpoints={endpoints}
          allowed={allowed}
          {...ruleRecords.value}
          onEdit={(rule) => (editing.value = rule)}
          onDelete={(rule) => (deleting.value = rule)}
          onSilence={(rule) => (silencing.value = rule)}
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
      {silencing.value !== null && (
        <SilenceDialog rule={silencing.value} onDone={refetch} onClose={() => (silencing.value = null)} />
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
  onSilence: (rule: Rule) => void
}

function RuleTable({ rules, endpoints, incidents, allowed, onEdit, onDelete, onSilence }: RuleTableProps) {
  const names = new Map(endpoints.map(({ id, label, url }) => [id, label || url]))
  return (
    <RecordTable
      label="Alert rules"
      rows={rules}
      keyOf={({ id }) => id}
      columns={[
        { name: 'Alert on', cell: (rule) => <Text value={ruleName(rule)} max={40} /> },
        {
          name: 'Condition',
          class: 'rule-when',
          cell: (rule) => <Text value={ruleCondition(rule)} max={200} />,
        },
        {
          name: 'Notify',
          cell: ({ endpointId }) => <Text value={names.get(endpointId) ?? endpointId} max={32} />,
        },
        { name: 'State', cell: (rule) => <RuleState rule={rule} open={openOf(rule, incidents)} /> },
      ]}
      actions={
        allowed
          ? (rule) => (
              <>
                {!rule.fromFile && (rule.kind === 'measure' || ruleNumbers[rule.kind].length > 0) && (
                  <RowButton label="Edit" of={ruleName(rule)} onClick={() => onEdit(rule)} />
                )}
                <RowButton label="Silence" of={ruleName(rule)} onClick={() => onSilence(rule)} />
                {!rule.fromFile && (
                  <RowButton label="Delete" of={ruleName(rule)} onClick={() => onDelete(rule)} />
                )}
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

function ruleName({ name, kind }: Rule): string {
  return name || ruleNames[kind]
}

function RuleState({ rule, open }: { rule: Rule; open: number }) {
  const { silencedUntil, fromFile } = rule
  const untilMs = silencedUntil === null ? 0 : Date.parse(silencedUntil)
  return (
    <span class="rule-state">
      {open === 0 ? <span class="chip plain">none open</span> : <span class="chip block">{open} open</span>}
      {untilMs > now() && <span class="chip review">silenced until {shortTime(untilMs)}</span>}
      {fromFile && <span class="chip plain">setup file</span>}
    </span>
  )
}

const silences = [
  { value: '1', text: '1 hour' },
  { value: '8', text: '8 hours' },
  { value: '24', text: '1 day' },
  { value: '168', text: '7 days' },
  { value: '0', text: 'End the silence' },
]

function SilenceDialog({ rule, onDone, onClose }: { rule: Rule; onDone: () => void; onClose: () => void }) {
  const submit = async (form: FormData): Promise<void> => {
    const hours = Number(textOf(form, 'hours'))
    const until = hours === 0 ? null : isoTime(now() + hours * 3_600_000)
    await webhookApi.silenceRule(rule.id, until)
    onDone()
  }
  return (
    <FormDialog title="Silence alert rule" action="Silence" onSubmit={submit} onClose={onClose}>
      <p>
        <Text value={ruleName(rule)} max={80} /> opens no alert until then. Open alerts resolve as usual.
      </p>
      <Choice name="hours" label="Silence for" options={silences} />
    </FormDialog>
  )
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
        Delete the rule{' '}
        <strong>
          <Text value={ruleName(rule)} max={80} />
        </strong>{' '}
        (<Text value={ruleCondition(rule)} max={200} />
        )?
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

/** Adds an alert rule, or edits the limits of one, and tests it on the past while it is edited. */
function RuleDialog({ rule, endpoints, onDone, onClose }: RuleDialogProps) {
  const kind = useSignal<RuleKind>(rule?.kind ?? 'measure')
  const tested = useSignal<RuleSettings | null>(null)
  const fields = useRef<HTMLDivElement>(null)
  const test = (): void => {
    const form = fields.current?.closest('form')
    if (!form) return
    const data = new FormData(form)
    tested.value = kind.peek() === 'measure' ? definitionOf(data) : presetOf(kind.peek(), data)
  }
  useEffect(test, [kind.value])
  const save = async (form: FormData): Promise<void> => {
    const isMeasure = kind.peek() === 'measure'
    const settings = isMeasure
      ? { ...definitionOf(form), name: textOf(form, 'name') }
      : numbersOf(kind.peek(), form)
    if (rule === null) await webhookApi.createRule(kind.peek(), textOf(form, 'endpointId'), settings)
    else await webhookApi.changeRule(rule.id, settings)
    onDone()
  }
  const pick = (text: string): void => {
    if (isRuleKind(text)) kind.value = text
  }
  return (
    <FormDialog
      title={rule === null ? 'Add alert rule' : `Edit alert rule: ${ruleName(rule)}`}
      action={rule === null ? 'Add alert rule' : 'Save'}
      class="rule-dialog"
      onSubmit={save}
      onClose={onClose}
    >
      {/* A change of a choice adds fields first. */}
      <div class="rule-fields" ref={fields} onInput={() => setTimeout(test)}>
        {rule === null && (
          <div class="field-pair">
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
          </div>
        )}
        {kind.value === 'measure' && <MeasureFields rule={rule} />}
        {ruleNumbers[kind.value].map((name) => (
          <NumberField key={name} name={name} rule={rule} />
        ))}
      </div>
      <Backtest key={kind.value} definition={tested.value} />
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
    min: 1,
    max: 1e9,
    step: 1,
    initial: 20,
  },
  minutes: {
    label: 'Minutes without events (1 to 10,080)',
    min: 1,
    max: 10_080,
    step: 1,
    initial: 30,
  },
}

function NumberField({ name, rule }: { name: NumberName; rule: Rule | null }) {
  const { label, min, max, step, initial } = fields[name]
  const currentValue = rule?.[name] ?? null
  const shown = currentValue === null ? initial : name === 'threshold' ? percent(currentValue) : currentValue
  const bounds = { min, max, step, required: true }
  return <Field name={name} label={label} type="number" value={String(shown)} {...bounds} />
}

function numbersOf(kind: RuleKind, form: FormData): Partial<RuleNumbers> {
  const numberEntries = ruleNumbers[kind].map((name): [NumberName, number] => {
    const value = Number(textOf(form, name))
    return [name, name === 'threshold' ? shareOf(value) : value]
  })
  return Object.fromEntries(numberEntries)
}
