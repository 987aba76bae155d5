/** The second step of sign-in: a code from the authenticator app, or a recovery code. */
import { useLayoutEffect, useId, useRef } from 'preact/hooks'

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
