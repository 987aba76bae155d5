/** The form shared by sign-in, setup, invitation and password reset: logo, title, fields and one button. */
import { useSignal } from '@preact/signals'
import { useId, useLayoutEffect, useRef } from 'preact/hooks'
import { Brand } from '../../components/marks.tsx'
import type { ComponentChildren } from 'preact'

interface CredentialFormProps {
  title: string
  action: string
  busy: boolean
  onSubmit: (form: FormData) => Promise<void>
  children: ComponentChildren
}

export function CredentialForm(props: CredentialFormProps) {
  useLayoutEffect(() => {
    document.title = `${props.title} · Sightglass`
  }, [props.title])
  return (
    <main class="alone">
      <p class="wordmark">
        <Brand sizePx={22} /> Sightglass
      </p>
      <form
        class="panel credential-form"
        onSubmit={(event) => {
          event.preventDefault()
          if (!props.busy) void props.onSubmit(new FormData(event.currentTarget))
        }}
      >
        <h1>{props.title}</h1>
        {props.children}
        <button type="submit" class="button primary" aria-disabled={props.busy}>
          {props.action}
        </button>
      </form>
    </main>
  )
}

/** The same page without a form: a message and where to continue. */
export function AloneNote({ title, children }: { title: string; children: ComponentChildren }) {
  useLayoutEffect(() => {
    document.title = `${title} · Sightglass`
  }, [title])
  return (
    <main class="alone">
      <p class="wordmark">
        <Brand sizePx={22} /> Sightglass
      </p>
      <div class="panel credential-form">
        <h1>{title}</h1>
        {children}
      </div>
    </main>
  )
}

export function EmailField() {
  const id = useId()
  const input = useRef<HTMLInputElement>(null)
  useLayoutEffect(() => input.current?.focus(), [])
  return (
    <div class="field">
      <label for={id}>Email</label>
      <input
        ref={input}
        id={id}
        name="email"
        type="email"
        autocomplete="username"
        required
        spellcheck={false}
      />
    </div>
  )
}

/** The label of the show button does not contain "password", so that the label names only the field. */
export function PasswordField(props: { label: string; autocomplete: string; isNew?: boolean }) {
  const id = useId()
  const shown = useSignal(false)
  const field = {
    id,
    name: 'password',
    autocomplete: props.autocomplete,
    required: true,
    spellcheck: false,
    'aria-describedby': props.isNew ? `${id}-hint` : undefined,
  }
  return (
    <div class="field password-field">
      <label for={id}>{props.label}</label>
      {shown.value ? <input type="text" {...field} /> : <input type="password" {...field} />}
      <button
        type="button"
        class="button quiet"
        aria-pressed={shown.value}
        aria-controls={id}
        onClick={() => (shown.value = !shown.value)}
      >
        {shown.value ? 'Hide' : 'Show'}
      </button>
      {props.isNew && (
        <p class="hint" id={`${id}-hint`}>
          At least 8 characters. Several random words are easy to remember and hard to guess.
        </p>
      )}
    </div>
  )
}

/** The second step of sign-in: a code from the authenticator app, or a recovery code. */
export function CodeField() {
  const id = useId()
  const input = useRef<HTMLInputElement>(null)
  useLayoutEffect(() => input.current?.focus(), [])
  return (
    <div class="field">
      <label for={id}>Code</label>
      <input
        ref={input}
        id={id}
        name="code"
        autocomplete="one-time-code"
        required
        maxLength={30}
        spellcheck={false}
        aria-describedby={`${id}-hint`}
      />
      <p class="hint" id={`${id}-hint`}>
        Six digits from your authenticator app, or a recovery code.
      </p>
    </div>
  )
}
