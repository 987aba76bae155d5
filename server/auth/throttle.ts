/**
 * Slows password guessing: after failures an account name and an address wait, 1 s doubling to 15 min, never for
 * ever.
 */
import { isIP } from 'node:net'
import type { Clock } from '../clock.ts'
import { AppError } from '../errors.ts'

export interface Throttle {
  /** Milliseconds this name must still wait before the next try; 0 when it may try now. */
  waitMs(name: string): number
  /** Throws 429 with `Retry-After` while any of the names must wait. */
  require(names: string[]): void
  failed(name: string): void
  succeeded(name: string): void
  /** Counts one refused try; returns how many were refused since the last `failed`. */
  refused(name: string): number
}

interface Row {
  failures: number
  refusals: number
  untilMs: number
}

const freeTries = 3
const stepMs = 1_000
const waitMsMax = 15 * 60_000
const rowsMax = 10_000

export function makeThrottle(clock: Clock): Throttle {
  const rows = new Map<string, Row>()
  const waitMs = (name: string) => Math.max(0, (rows.get(name)?.untilMs ?? 0) - clock.now())
  const refused = (name: string) => {
    const row = rows.get(name)
    return row ? ++row.refusals : 0
  }
  return {
    waitMs,
    require(names) {
      const longestMs = Math.max(...names.map(waitMs))
      if (longestMs === 0) return
      for (const each of names) refused(each)
      const seconds = Math.ceil(longestMs / 1000)
      throw new AppError('rate_limited', `Too many wrong tries; wait ${seconds} s and try again.`, {
        headers: {
          'retry-after': String(seconds),
          ratelimit: `"sign-in";r=0;t=${seconds}`,
          'ratelimit-policy': `"sign-in";q=1;w=${seconds}`, // one try, once the wait is over
        },
      })
    },
    failed(name) {
      const row = rows.get(name) ?? { failures: 0, refusals: 0, untilMs: 0 }
      row.failures++
      row.refusals = 0
      const over = row.failures - freeTries
      if (over >= 0) row.untilMs = clock.now() + Math.min(waitMsMax, stepMs * 2 ** Math.min(over, 20))
      // Re-inserting keeps the map in order of last failure, so the oldest row is the one to forget.
      rows.delete(name)
      rows.set(name, row)
      if (rows.size > rowsMax) rows.delete(rows.keys().next().value!)
    },
    succeeded: (name) => void rows.delete(name),
    refused,
  }
}

/** The sender as the throttle sees it: an IPv4 address, or the /64 of an IPv6 one. */
export function senderName(address: string): string {
  if (isIP(address) !== 6) return address
  const [head = '', tail = ''] = address.split('::')
  const front = head.split(':').filter(Boolean)
  const back = address.includes('::') ? tail.split(':').filter(Boolean) : []
  const groups = [...front, ...Array<string>(Math.max(0, 8 - front.length - back.length)).fill('0'), ...back]
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`
}
