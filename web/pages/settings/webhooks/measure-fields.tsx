/** The fields of a rule that compares a measure, in the dialog that adds or edits it. */
import { useSignal } from '@preact/signals'
import { useId } from 'preact/hooks'
import { totals } from '../../../app/session.ts'
import { Choice, Field } from '../../../components/dialog.tsx'
import type { Rule } from '../../../api/webhook-api.ts'
import {
  conditionNames,
  filterText,
  groupNames,
  measureNames,
  windowNames,
  type ConditionName,
  type MeasureName,
} from './measure-rule.ts'

const measures = Object.entries(measureNames).map(([value, text]) => ({ value, text }))
const conditions = Object.entries(conditionNames).map(([value, text]) => ({ value, text }))
const directions = [
  { value: 'both', text: 'in both directions' },
  { value: 'up', text: 'upwards' },
  { value: 'down', text: 'downwards' },
]

/** A new rule counts in the unit of the range that the navigation shows: requests, or visits without requests. */
function unitFilter(): string {
  const counted = totals.peek()
  const type = counted?.unit.type ?? ''
  return (counted?.totals[type] ?? 0) > 0 ? `type:${type}` : ''
}

export function MeasureFields({ rule }: { rule: Rule | null }) {
  const measure = useSignal<MeasureName>(rule?.measure ?? 'count')
  const kind = useSignal<ConditionName>(rule?.condition?.kind ?? 'above')
  const isShare = measure.value === 'share' && kind.value !== 'absence'
  return (
    <div class="measure-fields">
      <Field name="name" label="Name" value={rule?.name ?? ''} required maxLength={80} />
      <div class="field-pair">
        <Choice
          name="measure"
          label="Measure"
          options={measures}
          value={measure.value}
          onChange={(value) => (measure.value = value as MeasureName)}
        />
        <Choice
          name="windowMinutes"
          label="Over"
          options={windowNames}
          value={String(rule?.windowMinutes ?? 60)}
        />
      </div>
      <Lines
        name="filter"
        label="Events"
        value={rule === null ? unitFilter() : filterText(rule.filter)}
        hint="One filter per line, such as siteId:shop. A request and its detection are two events: type:agent.requested counts requests, type:agent.detected visits. Empty: all events."
      />
      {isShare && (
        <Lines
          name="of"
          label="Share of events with"
          value={filterText(rule?.of) || 'outcome:blocked'}
          hint="One filter per line."
        />
      )}
      <Choice
        name="condition"
        label="Alert when it"
        options={conditions}
        value={kind.value}
        onChange={(value) => (kind.value = value as ConditionName)}
      />
      <ConditionFields rule={rule} kind={kind.value} isShare={isShare} />
      <div class="field-pair">
        <Choice name="groupBy" label="For each" options={groupNames} value={rule?.groupBy ?? ''} />
        <Minimum rule={rule} />
      </div>
      <Waits rule={rule} />
    </div>
  )
}

function ConditionFields({
  rule,
  kind,
  isShare,
}: {
  rule: Rule | null
  kind: ConditionName
  isShare: boolean
}) {
  if (kind === 'absence') return null
  const condition = rule?.condition
  if (kind === 'change') {
    const change = condition?.kind === 'change' ? condition : null
    return (
      <div class="field-pair">
        <Choice name="direction" label="Direction" options={directions} value={change?.direction ?? 'both'} />
        <Field
          name="deviations"
          label="Deviations"
          type="number"
          value={String(change?.deviations ?? 4)}
          min={1}
          max={100}
          step="any"
          required
        />
        <Field
          name="weeks"
          label="Weeks (2 to 8)"
          type="number"
          value={String(change?.weeks ?? 4)}
          min={2}
          max={8}
          required
        />
      </div>
    )
  }
  const number = condition?.kind === 'above' || condition?.kind === 'below' ? condition.value : null
  const shown =
    number === null ? (isShare ? 20 : 100) : isShare ? Math.round(number * 100_000) / 1_000 : number
  return (
    <Field
      key={isShare ? 'percent' : 'number'}
      name="value"
      label={isShare ? 'Threshold (percent)' : 'Threshold'}
      type="number"
      value={String(shown)}
      min={0}
      max={isShare ? 100 : 1e12}
      step="any"
      required
    />
  )
}

const minimum = 'Minimum events (ignored below this)'

function Minimum({ rule }: { rule: Rule | null }) {
  const bounds = { min: 0, max: 1e9, required: true }
  return (
    <Field name="eventsMin" label={minimum} type="number" value={String(rule?.eventsMin ?? 20)} {...bounds} />
  )
}

function Waits({ rule }: { rule: Rule | null }) {
  const minutes = { type: 'number' as const, min: 0, max: 1_440, required: true }
  const { forMinutes = 0, keepFiringMinutes = 0, noData, notifyPending = false } = rule ?? {}
  return (
    <details open={forMinutes > 0 || keepFiringMinutes > 0 || noData === 'alert' || notifyPending}>
      <summary>Waits and missing data</summary>
      <div class="field-pair">
        <Field name="forMinutes" label="Pending for (minutes)" value={String(forMinutes)} {...minutes} />
        <Field
          name="keepFiringMinutes"
          label="Keep firing for (minutes)"
          value={String(keepFiringMinutes)}
          {...minutes}
        />
      </div>
      <label class="check">
        <input type="checkbox" name="noData" defaultChecked={noData === 'alert'} />
        Alert when there are no events
      </label>
      <label class="check">
        <input type="checkbox" name="notifyPending" defaultChecked={notifyPending} />
        Send a message when the alert is pending
      </label>
    </details>
  )
}

function Lines({ name, label, value, hint }: { name: string; label: string; value: string; hint: string }) {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <textarea id={id} name={name} rows={2} spellcheck={false} class="mono" aria-describedby={`${id}-hint`}>
        {value}
      </textarea>
      <p class="hint" id={`${id}-hint`}>
        {hint}
      </p>
    </div>
  )
}
