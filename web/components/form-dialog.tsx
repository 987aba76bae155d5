/** A dialog with a form, its fields and one action. It closes on success and shows the error otherwise. */
import './form-dialog.css'
import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'
import { Dialog } from './dialog.tsx'
import { Problem } from './problem.tsx'
import { useTask } from './task.ts'

interface FormDialogProps {
  title: string
  action: string
  danger?: boolean
  /** `stay` keeps the dialog open, for example to confirm a warning. */
  onSubmit: (form: FormData) => Promise<void | 'stay'>
  onClose: () => void
  children: ComponentChildren
}

export function FormDialog({ title, action, danger, onSubmit, onClose, children }: FormDialogProps) {
  const { busy, problem, run } = useTask()
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        class="dialog-form"
        onSubmit={(event) => {
          event.preventDefault()
          const form = new FormData(event.currentTarget)
          let stays = false
          void run(async () => void (stays = (await onSubmit(form)) === 'stay')).then(
            (done) => done && !stays && onClose(),
          )
        }}
      >
        {children}
        {problem.value && <Problem error={problem.value} />}
        <div class="dialog-foot">
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class={`button ${danger ? 'danger' : 'primary'}`} aria-disabled={busy.value}>
            {action}
          </button>
        </div>
      </form>
    </Dialog>
  )
}

interface FieldProps {
  name: string
  label: string
  hint?: string
  type?: 'text' | 'email' | 'password' | 'date' | 'datetime-local' | 'number'
  min?: number // of a number field
  max?: number
  step?: number | 'any'
  value?: string
  autocomplete?: string
  required?: boolean
  autofocus?: boolean
  maxLength?: number
}

export function Field(props: FieldProps) {
  const { name, label, hint, type = 'text', value = '', autocomplete = 'off' } = props
  const id = useId()
  const shared = {
    id,
    name,
    defaultValue: value,
    autocomplete,
    spellcheck: false,
    'aria-describedby': hint === undefined ? undefined : `${id}-hint`,
    required: props.required ?? false,
    'data-first-focus': props.autofocus,
    maxLength: props.maxLength ?? 1_000,
  }
  const inputs = {
    text: <input type="text" {...shared} />,
    email: <input type="email" {...shared} />,
    password: <input type="password" {...shared} />,
    date: <input type="date" {...shared} />,
    'datetime-local': <input type="datetime-local" {...shared} />,
    number: <input type="number" min={props.min} max={props.max} step={props.step ?? 1} {...shared} />,
  }
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {inputs[type]}
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  )
}

interface ChoiceProps<T extends string> {
  name: string
  label: string
  options: readonly { value: T; text: string }[]
  value?: T
  onChange?: (value: string) => void
}

export function Choice<T extends string>({ name, label, options, value, onChange }: ChoiceProps<T>) {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} name={name} onChange={(event) => onChange?.(event.currentTarget.value)}>
        {options.map((option) => (
          <option value={option.value} selected={option.value === value}>
            {option.text}
          </option>
        ))}
      </select>
    </div>
  )
}

/** A field of the form as text; empty if it is missing. */
export function textOf(form: FormData, name: string): string {
  return String(form.get(name) ?? '')
}
