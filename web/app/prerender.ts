/** Idle time: waits for it, and draws a page unseen in it, because the first drawing takes up to twice as long. */
import { render, type ComponentChildren } from 'preact'

/**
 * In one task, which ends before the browser paints: nothing of it is ever on the screen. Effects after the paint do
 * not run, so nothing is fetched and no timer starts. Rejects with the error of the drawing.
 */
export async function prerender(content: ComponentChildren): Promise<void> {
  await whenIdle()
  // A form: its radio buttons are a group of their own, and do not undo a choice on the screen.
  const host = document.createElement('form')
  // In the document, since styles are worked out only there; out of reach for eyes, keys and screen readers.
  host.inert = true
  host.style.cssText = 'position: fixed; inset: 0; visibility: hidden; contain: strict'
  document.body.append(host)
  try {
    render(content, host)
    // Charts draw at the end of the task.
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
