/** The code of the pages, and their first answers: when a page is wanted, and ahead while nothing else is to do. */
import type { ComponentType } from 'preact'
import { type PageCode, type PageRoute, routes } from './routes.ts'

const codes = new Map<PageRoute, ComponentType>()

/** Null until it came. What is there can be drawn in the same turn as the click that asks for it. */
export function codeOf(route: PageRoute): ComponentType | null {
  return codes.get(route) ?? null
}

export async function loadCode(route: PageRoute): Promise<PageCode> {
  const code = await route.load()
  codes.set(route, code.default)
  return code
}

/** The page that was opened comes first, with what it asks for. */
const waitMs = 150

/** A first visit then waits for nothing. One at a time, so that a click in between waits for one at most. */
export function getReadyWhenIdle(): () => void {
  const whenIdle = window.requestIdleCallback ?? ((work: () => void) => setTimeout(work, waitMs))
  let ended = false
  const load = async ([route, ...rest]: PageRoute[]): Promise<void> => {
    if (!route || ended) return
    try {
      const code = await loadCode(route)
      if (!ended) await code.ahead?.()
    } catch {
      return // the page itself asks again when it is wanted, and says what is wrong
    }
    whenIdle(() => void load(rest))
  }
  const timer = setTimeout(() => void load(routes), waitMs)
  return () => {
    ended = true
    clearTimeout(timer)
  }
}
