/** Waits until nothing else is to do, so that what is made ready does not delay what was asked for. */

/** Where the browser does not tell. */
const waitMs = 50

export function whenIdle(): Promise<void> {
  return new Promise((resolve) => {
    if (window.requestIdleCallback) window.requestIdleCallback(() => resolve())
    else setTimeout(resolve, waitMs)
  })
}
