/** Counts of the last hour of one organization, minute by minute: what the rules about shares look at. */

export interface CountedEvent {
  receivedAtMs: number
  type: string
  outcome: string
  tool: string | null
}

export interface Share {
  total: number
  bad: number
}

export interface Rates {
  add(event: CountedEvent): void
  /** Blocked among all events of the hour before `now`. */
  blocked(now: number): Share
  /** Errors among the executions of each tool in the hour before `now`. */
  toolErrors(now: number): Map<string, Share>
}

const minuteMs = 60_000
export const windowMs = 60 * minuteMs
/** Tools that an hour may hold beside each other; more are not looked at, so that a flood of names costs nothing. */
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

  return {
    add({ receivedAtMs, type, outcome, tool }) {
      const number = Math.floor(receivedAtMs / minuteMs)
      const minute = minutes.get(number) ?? { all: { total: 0, bad: 0 }, tools: new Map<string, Share>() }
      minutes.set(number, minute)
      minute.all.total++
      if (outcome === 'blocked') minute.all.bad++
      if (type !== 'tool.executed' || tool === null) return
      const share = minute.tools.get(tool) ?? { total: 0, bad: 0 }
      if (share.total === 0 && minute.tools.size >= toolsMax) return
      minute.tools.set(tool, share)
      share.total++
      if (outcome === 'error') share.bad++
    },
    blocked(now) {
      forget(now)
      return [...minutes.values()].reduce((sum, { all }) => plus(sum, all), { total: 0, bad: 0 })
    },
    toolErrors(now) {
      forget(now)
      const sums = new Map<string, Share>()
      for (const { tools } of minutes.values()) {
        for (const [tool, share] of tools) sums.set(tool, plus(sums.get(tool) ?? { total: 0, bad: 0 }, share))
      }
      return sums
    },
  }
}

function plus(a: Share, b: Share): Share {
  return { total: a.total + b.total, bad: a.bad + b.bad }
}
