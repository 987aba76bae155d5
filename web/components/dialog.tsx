/** A native modal dialog, open while it is rendered. Escape and a click on the backdrop close it. */
import './dialog.css'
import type { ComponentChildren } from 'preact'
import { useSignal } from '@preact/signals'
import { useLayoutEffect, useId, useRef } from 'preact/hooks'

export interface DialogProps {
  title: string
  onClose: () => void
  /** For content that is shown once: the backdrop does not close it, and Escape asks first. */
  sticky?: boolean
  class?: string
  children: ComponentChildren
}

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
    return () => element.close()
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
