/** A button that copies and says whether it did. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { copyText } from '../app/clipboard.ts'

const shownMs = 2_000

/** `text` may be a function when making the text is dear. */
export function CopyButton(props: { text: string | (() => string); label: string; primary?: boolean }) {
  const said = useSignal('')
  const timer = useSignal(0)
  useEffect(() => () => clearTimeout(timer.value), [])
  const copy = async (): Promise<void> => {
    const text = typeof props.text === 'string' ? props.text : props.text()
    said.value = (await copyText(text)) ? 'Copied' : 'Select it and copy by hand'
    clearTimeout(timer.value)
    timer.value = Number(setTimeout(() => (said.value = ''), shownMs))
  }
  return (
    <>
      <button type="button" class={props.primary ? 'button primary' : 'button'} onClick={() => void copy()}>
        {said.value || props.label}
      </button>
      <span class="visually-hidden" role="status">
        {said.value}
      </span>
    </>
  )
}
