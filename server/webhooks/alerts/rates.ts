/** Counts of the last hour of one organization, minute by minute: what the rules about shares look at. */

export interface Share {
  total: number
  bad: number
}

export interface Rates {
  /** Arrivals around `atMs`, and how many of them were blocked. */
  addBlocked(atMs: number, share: Share): void
  addExecution(atMs: number, tool: string, isError: boolean): void
  /** Blocked among all events of the hour before `now`. */
  blocked(now: number): Share
  /** Errors among the executions of each tool in the hour before `now`. */
  toolErrors(now: number): Map<string, Share>
}

const minuteMs = 60_000
export const windowMs = 60 * minuteMs
/** Tools that a minute may hold beside each other; more are not looked at, so that a flood of names costs nothing. */
const toolsMax = 1_000

interface Minute {
  all: Share
  tools: Map<string, Share>
}

export function makeRates(): Rates {
  const minutes = new Map<number, Minute>() // by number since 1970

  function forget(now: number): void {
    const oldest = Math.floor((now - windowMs) / minuteMs)
    for (const minute of minutes.keys()) if (minute <= oldest) minutes.delete(minute)
  }

  function minuteOf(atMs: number): Minute {
    const number = Math.floor(atMs / minuteMs)
    const minute = minutes.get(number) ?? { all: { total: 0, bad: 0 }, tools: new Map<string, Share>() }
    minutes.set(number, minute)
    return minute
  }

  return {
    addBlocked(atMs, share) {
      const minute = minuteOf(atMs)
      minute.all = plus(minute.all, share)
    },
    addExecution(atMs, tool, isError) {
      const { tools } = minuteOf(atMs)
      if (!tools.has(tool) && tools.size >= toolsMax) return
      tools.set(tool, plus(tools.get(tool) ?? none, { total: 1, bad: isError ? 1 : 0 }))
    },
    blocked(now) {
      forget(now)
      return [...minutes.values()].reduce((sum, { all }) => plus(sum, all), none)
    },
    toolErrors(now) {
      forget(now)
      const sums = new Map<string, Share>()
      for (const { tools } of minutes.values()) {
        for (const [tool, share] of tools) sums.set(tool, plus(sums.get(tool) ?? none, share))
      }
      return sums
    },
  }
}

const none: Share = { total: 0, bad: 0 }

function plus(a: Share, b: Share): Share {
  return { total: a.total + b.total, bad: a.bad + b.bad }
}
