/** A button that opens a panel below it: filters, saved views, exports. */
import './disclosure.css'
import { useSignal } from '@preact/signals'
import { useEffect, useId, useRef } from 'preact/hooks'
import type { ComponentChildren } from 'preact'

/** Escape, a click outside and leaving it with Tab close it. */
export function Disclosure(props: { label: string; id?: string; children: ComponentChildren }) {
  const open = useSignal(false)
  const root = useRef<HTMLDivElement>(null)
  const button = useRef<HTMLButtonElement>(null)
  const panelId = useId()
  useEffect(() => {
    const onPointer = (event: PointerEvent): void => {
      if (event.target instanceof Node && !root.current?.contains(event.target)) open.value = false
    }
    document.addEventListener('pointerdown', onPointer)
    return () => document.removeEventListener('pointerdown', onPointer)
  }, [])
  return (
    <div
      class="disclosure"
      ref={root}
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || !open.value) return
        event.preventDefault()
        event.stopPropagation()
        open.value = false
        button.current?.focus()
      }}
      onFocusOut={(event) => {
        const next = event.relatedTarget
        if (next instanceof Node && !root.current?.contains(next)) open.value = false
      }}
    >
      <button
        ref={button}
        id={props.id}
        type="button"
        class="button"
        aria-expanded={open.value}
        aria-controls={panelId}
        onClick={() => (open.value = !open.value)}
      >
        {props.label}
      </button>
      {open.value && (
        <div id={panelId} class="disclosure-panel panel">
          {props.children}
        </div>
      )}
    </div>
  )
}
