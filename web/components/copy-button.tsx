/** A button that copies text and shows whether it worked. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { copyText } from '../app/clipboard.ts'

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
