/** When components render: below the first view after the first paint, and slow pages unseen in idle time. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { printing } from '../app/theme.ts'
import { render, type ComponentChildren } from 'preact'

/** Content below the first view, which follows after the first paint: a click shows the visible part at once. */
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

/**
 * Renders a page unseen, because the first render takes up to twice as long. The task ends before the browser paints,
 * so nothing appears on the screen. Effects after paint do not run, so nothing is fetched and no timer starts.
 * Rejects with the error of the render.
 */
export async function prerender(content: ComponentChildren): Promise<void> {
  await whenIdle()
  // A form isolates its radio buttons. Otherwise they would clear a choice on the screen.
  const host = document.createElement('form')
  // Attached to the document, because styles are computed only there. Inert and hidden from screen readers.
  host.inert = true
  host.style.cssText = 'position: fixed; inset: 0; visibility: hidden; contain: strict'
  document.body.append(host)
  try {
    render(content, host)
    // Charts render at the end of the task.
    await Promise.resolve()
  } finally {
    render(null, host)
    host.remove()
  }
}

/** For browsers without requestIdleCallback. */
const waitMs = 50

export function whenIdle(): Promise<void> {
  return new Promise((resolve) => {
    if (window.requestIdleCallback) window.requestIdleCallback(() => resolve())
    else setTimeout(resolve, waitMs)
  })
}
