/** Counters of a running server: response times by route pattern, method and status, and webhook outcomes. */
import { makeHistogram, observe } from '../../../db/rules/histogram.ts'
import type { Histogram } from '../../../db/contract/histogram.ts'
import type { WebhookStore } from '../../../db/contract/webhooks.ts'

export interface HttpTimes {
  /** `route` is undefined when no route matched. */
  note(route: string | undefined, method: string, status: number, ms: number): void
  report(): { route: string; method: string; status: string; histogram: Histogram }[]
}

const boundsMs = [1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 10_000]
const methods = new Set(['GET', 'HEAD', 'POST', 'PATCH', 'PUT', 'DELETE', 'OPTIONS'])

export function makeHttpTimes(): HttpTimes {
  const rows = new Map<string, { route: string; method: string; status: string; histogram: Histogram }>()
  let last = { route: '', method: '', status: 0, histogram: makeHistogram(boundsMs) } // often the next, too

  function histogramOf(route: string, method: string, status: number): Histogram {
    const knownMethod = methods.has(method) ? method : 'other'
    const key = `${route} ${knownMethod} ${status}`
    let row = rows.get(key)
    if (row === undefined)
      rows.set(
        key,
        (row = { route, method: knownMethod, status: String(status), histogram: makeHistogram(boundsMs) }),
      )
    return row.histogram
  }

  return {
    note(route = 'none', method, status, ms) {
      if (status !== last.status || route !== last.route || method !== last.method)
        last = { route, method, status, histogram: histogramOf(route, method, status) }
      observe(last.histogram, ms)
    },
    report: () => [...rows.values()],
  }
}

/** Counts the outcomes of webhook attempts as they are stored. */
export interface WebhookOutcomes {
  /** The store, wrapped so that every recorded outcome is counted. */
  counted(webhooks: WebhookStore): WebhookStore
  totals(): { delivered: number; retried: number; deadLettered: number }
}

export function makeWebhookOutcomes(): WebhookOutcomes {
  const totals = { delivered: 0, retried: 0, deadLettered: 0 }
  return {
    counted: (webhooks) => ({
      ...webhooks,
      async recordAndClaim(command) {
        const result = await webhooks.recordAndClaim(command)
        for (const { next } of command.outcomes) {
          if (next.status === 'delivered') totals.delivered++
          else if (next.status === 'pending') totals.retried++
          else totals.deadLettered++
        }
        return result
      },
    }),
    totals: () => totals,
  }
}
