/** Prerenders pages in idle time, because the first render of a page takes up to twice as long. */
import { render, type ComponentChildren } from 'preact'

/**
 * Renders in one task that ends before the browser paints, so nothing appears on the screen. Effects after paint do not
 * run, so nothing is fetched and no timer starts. Rejects with the error of the render.
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
