/** Renders content below the first view after the first paint, so that a click shows the visible part at once. */
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { printing } from '../app/theme.ts'

export function Later({ children }: { children: ComponentChildren }) {
  return useDeferred() ? <>{children}</> : null
}

/** False in the first frame. Components follow one per task, top of the page first. Always true when printing. */
export function useDeferred(): boolean {
  const isReady = useSignal(false)
  useEffect(() => enqueue(() => (isReady.value = true)), [])
  return isReady.value || printing.value
}

const waiting = new Set<() => void>()

/** Runs one callback per task, so that the browser can paint and handle input in between. Returns a cancel function. */
function enqueue(act: () => void): () => void {
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
