/** A button that copies text and shows whether it worked. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

const shownMs = 2_000

/** `text` may be a function if the text is expensive to build. */
export function CopyButton(props: { text: string | (() => string); label: string; primary?: boolean }) {
  const message = useSignal('')
  const timer = useSignal(0)
  useEffect(() => () => clearTimeout(timer.value), [])
  const copy = async (): Promise<void> => {
    const text = typeof props.text === 'string' ? props.text : props.text()
    message.value = (await copyText(text)) ? 'Copied' : 'Copy failed. Select the text.'
    clearTimeout(timer.value)
    timer.value = Number(setTimeout(() => (message.value = ''), shownMs))
  }
  return (
    <>
      <button type="button" class={props.primary ? 'button primary' : 'button'} onClick={() => void copy()}>
        {message.value || props.label}
      </button>
      <span class="visually-hidden" role="status">
        {message.value}
      </span>
    </>
  )
}

/** Whether the text is on the clipboard now. */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return copyBySelection(text)
  }
}

function copyBySelection(text: string): boolean {
  const field = document.createElement('textarea')
  field.value = text
  field.className = 'visually-hidden'
  // Inside an open dialog everything else is inert and cannot be selected.
  const home = document.querySelector('dialog:modal') ?? document.body
  const focused = document.activeElement
  home.append(field)
  field.select()
  const copied = document.execCommand('copy')
  field.remove()
  if (focused instanceof HTMLElement) focused.focus()
  return copied
}
