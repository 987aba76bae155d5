/** A native modal dialog that is open for as long as it is drawn; Escape and the backdrop close it. */
import './dialog.css'
import type { ComponentChildren } from 'preact'
import { useSignal } from '@preact/signals'
import { useLayoutEffect, useId, useRef } from 'preact/hooks'

export interface DialogProps {
  title: string
  onClose: () => void
  /** What it shows is shown once: a click beside it does nothing, and Escape asks first. */
  sticky?: boolean
  class?: string
  children: ComponentChildren
}

export function Dialog(props: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  const asking = useSignal(false)
  // Before the paint: who types at once types into it.
  useLayoutEffect(() => {
    const element = dialog.current
    if (!element) return
    element.showModal()
    // Not the autofocus attribute: the browser complains in its console when a page that has focus adds one.
    element.querySelector<HTMLElement>('[data-first-focus]')?.focus()
    return () => element.close()
  }, [])
  return (
    <dialog
      ref={dialog}
      class={`dialog ${props.class ?? ''}`}
      aria-labelledby={titleId}
      onKeyDown={(event) => {
        // Before the browser takes it: the second time it would close the dialog without a word.
        if (!props.sticky || event.key !== 'Escape') return
        event.preventDefault()
        asking.value = !asking.value
      }}
      onCancel={(event) => {
        event.preventDefault()
        if (props.sticky) asking.value = true
        else props.onClose()
      }}
      onMouseDown={(event) => {
        if (event.target === dialog.current && !props.sticky) props.onClose()
      }}
    >
      <div class="dialog-body">
        <h2 id={titleId}>{props.title}</h2>
        {props.children}
        {asking.value && <ReallyClose onStay={() => (asking.value = false)} onClose={props.onClose} />}
      </div>
    </dialog>
  )
}

function ReallyClose({ onStay, onClose }: { onStay: () => void; onClose: () => void }) {
  const stay = useRef<HTMLButtonElement>(null)
  useLayoutEffect(() => stay.current?.focus(), [])
  return (
    <div class="really-close" role="alert">
      <p>This is not shown again. Close it?</p>
      <div class="dialog-foot">
        <button type="button" class="button" onClick={onClose}>
          Close for good
        </button>
        <button type="button" class="button primary" ref={stay} onClick={onStay}>
          Keep it open
        </button>
      </div>
    </div>
  )
}
