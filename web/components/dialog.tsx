/** A native modal dialog that is open for as long as it is drawn; Escape and the backdrop close it. */
import './dialog.css'
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'

export interface DialogProps {
  title: string
  onClose: () => void
  /** A dialog that shows something once must not vanish by a click beside it. */
  sticky?: boolean
  class?: string
  children: ComponentChildren
}

export function Dialog(props: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  useEffect(() => {
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
      onCancel={(event) => {
        event.preventDefault()
        props.onClose()
      }}
      onMouseDown={(event) => {
        if (event.target === dialog.current && !props.sticky) props.onClose()
      }}
    >
      <div class="dialog-body">
        <h2 id={titleId}>{props.title}</h2>
        {props.children}
      </div>
    </dialog>
  )
}
