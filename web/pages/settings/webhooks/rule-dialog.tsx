/** Adds an alert rule, or edits the limits of one. */
import { useSignal } from '@preact/signals'
import {
  type Endpoint,
  type Rule,
  type RuleKind,
  type RuleNumbers,
  webhookApi,
} from '../../../api/webhook-api.ts'
import { Choice, Field, FormDialog, textOf } from '../../../components/dialog.tsx'
import { isRuleKind, type NumberName, percent, ruleNames, ruleNumbers, shareOf } from './rule-labels.ts'

interface RuleDialogProps {
  rule: Rule | null // null: a new one
  endpoints: Endpoint[]
  onDone: () => void
  onClose: () => void
}

const kinds = Object.keys(ruleNames).filter(isRuleKind)

export function RuleDialog({ rule, endpoints, onDone, onClose }: RuleDialogProps) {
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
