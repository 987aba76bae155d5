/** Dialogs: the native modal one, one with a form and its fields, and one that shows a secret once. */
import './dialog.css'
import { useSignal } from '@preact/signals'
import { useId, useLayoutEffect, useRef } from 'preact/hooks'
import { leaveFocus } from '../app/router.ts'
import { CopyButton } from './copy.tsx'
import { Problem, useTask } from './problem.tsx'
import type { ComponentChildren } from 'preact'

interface DialogProps {
  title: string
  onClose: () => void
  /** For content that is shown once: the backdrop does not close it, and Escape requires a confirmation. */
  sticky?: boolean
  class?: string
  children: ComponentChildren
}

/** Open while it is rendered. Escape and a click on the backdrop close it. */
export function Dialog(props: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  const confirming = useSignal(false)
  // Before paint, so that typing right away goes into the dialog.
  useLayoutEffect(() => {
    const element = dialog.current
    if (!element) return
    element.showModal()
    // Not the autofocus attribute: browsers log a warning if the page already has focus.
    element.querySelector<HTMLElement>('[data-first-focus]')?.focus()
    return () => {
      element.close()
      leaveFocus()
    }
  }, [])
  return (
    <dialog
      ref={dialog}
      class={`dialog ${props.class ?? ''}`}
      aria-labelledby={titleId}
      onKeyDown={(event) => {
        // Prevents the browser's default: a second Escape would close the dialog without onCancel.
        if (!props.sticky || event.key !== 'Escape') return
        event.preventDefault()
        confirming.value = !confirming.value
      }}
      onCancel={(event) => {
        event.preventDefault()
        if (props.sticky) confirming.value = true
        else props.onClose()
      }}
      onMouseDown={(event) => {
        if (event.target === dialog.current && !props.sticky) props.onClose()
      }}
    >
      <div class="dialog-body">
        <h2 id={titleId}>{props.title}</h2>
        {props.children}
        {confirming.value && (
          <ConfirmClose onStay={() => (confirming.value = false)} onClose={props.onClose} />
        )}
      </div>
    </dialog>
  )
}

function ConfirmClose({ onStay, onClose }: { onStay: () => void; onClose: () => void }) {
  const stay = useRef<HTMLButtonElement>(null)
  useLayoutEffect(() => stay.current?.focus(), [])
  return (
    <div class="confirm-close" role="alert">
      <p>This is not shown again. Close it?</p>
      <div class="dialog-foot">
        <button type="button" class="button" onClick={onClose}>
          Close anyway
        </button>
        <button type="button" class="button primary" ref={stay} onClick={onStay}>
          Keep open
        </button>
      </div>
    </div>
  )
}

interface SecretDialogProps {
  title: string
  about: ComponentChildren
  label: string // of the secret
  secret: string
  copyLabel: string
  onClose: () => void
  children?: ComponentChildren
}

/** Shows a secret once, such as a new key, with a copy button. It closes only after a confirmation. */
export function SecretDialog(props: SecretDialogProps) {
  const { title, about: description, label, secret, copyLabel, onClose, children } = props
  return (
    <Dialog title={title} sticky onClose={onClose}>
      <p>{description}</p>
      <div class="secret">
        <output class="mono" tabIndex={0} aria-label={label}>
          {secret}
        </output>
        <CopyButton text={secret} label={copyLabel} primary />
      </div>
      {children}
      <div class="dialog-foot">
        <button type="button" class="button" onClick={onClose}>
          Done, I saved it
        </button>
      </div>
    </Dialog>
  )
}

interface FormDialogProps {
  title: string
  action: string
  danger?: boolean
  class?: string
  /** `stay` keeps the dialog open, for example to confirm a warning. */
  onSubmit: (form: FormData) => Promise<void | 'stay'>
  onClose: () => void
  children: ComponentChildren
}

/** A form with one action. The dialog closes on success and shows the error otherwise. */
export function FormDialog(props: FormDialogProps) {
  const { title, action, danger, onSubmit, onClose, children } = props
  const { busy, problem, run } = useTask()
  return (
    <Dialog title={title} onClose={onClose} {...(props.class !== undefined && { class: props.class })}>
      <form
        class="dialog-form"
        onSubmit={(event) => {
          event.preventDefault()
          const form = new FormData(event.currentTarget)
          let stays = false
          void run(async () => void (stays = (await onSubmit(form)) === 'stay')).then(
            (isDone) => isDone && !stays && onClose(),
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
