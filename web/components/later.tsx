/** What lies below the first view: drawn after the page was painted, so that a click is answered by what is seen. */
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { printing } from '../app/printing.ts'

export function Later({ children }: { children: ComponentChildren }) {
  return useTurn() ? <>{children}</> : null
}

/** False in the first frame. Turns come one by one, the highest on the page first; paper has no first view. */
export function useTurn(): boolean {
  const isThere = useSignal(false)
  useEffect(() => takeTurn(() => (isThere.value = true)), [])
  return isThere.value || printing.value
}

const waiting = new Set<() => void>()

/** One a task: between two the browser may paint and hear the reader. Returns how to leave the queue. */
function takeTurn(act: () => void): () => void {
  if (waiting.size === 0) setTimeout(next)
  waiting.add(act)
  return () => void waiting.delete(act)
}

function next(): void {
  const [act] = waiting
  if (!act) return
  waiting.delete(act)
  if (waiting.size > 0) setTimeout(next)
  act()
}
