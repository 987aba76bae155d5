/** The code of the pages, and their first answers: when a page is wanted, and ahead while nothing else is to do. */
import type { ComponentType } from 'preact'
import { whenIdle } from './idle.ts'
import { type PageCode, type PageRoute, routes } from '../routes.ts'

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
  let ended = false
  const getReady = async (): Promise<void> => {
    for (const route of routes) {
      await whenIdle()
      if (ended) return
      if (codeOf(route)) continue // it was opened already
      try {
        const code = await loadCode(route)
        if (!ended) await code.prefetch?.()
      } catch {
        // The page itself asks again when it is wanted, and says what is wrong.
      }
    }
  }
  const timer = setTimeout(() => void getReady(), waitMs)
  return () => {
    ended = true
    clearTimeout(timer)
  }
}
