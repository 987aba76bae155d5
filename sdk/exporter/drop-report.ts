/** Counts dropped events and says so without a flood: at once, then at most once a minute, and when it is over. */
import type { OnError } from '../client/problem.ts'

export interface DropReport {
  add(): void
  total(): number
  /** Reports what was counted since the last report, if anything. */
  tellRest(): void
}

const quietMs = 60_000

export function createDropReport(nowMs: () => number, report: OnError): DropReport {
  let total = 0
  let untold = 0
  let lastMs = Number.NEGATIVE_INFINITY
  const tell = (): void => {
    if (untold === 0) return
    const message = `The queue is full: ${untold} events were dropped, ${total} since the start.`
    report({ code: 'queue_full', message, count: untold })
    lastMs = nowMs()
    untold = 0
  }
  return {
    add() {
      total++
      untold++
      if (nowMs() - lastMs >= quietMs) tell()
    },
    total: () => total,
    tellRest: tell,
  }
}
