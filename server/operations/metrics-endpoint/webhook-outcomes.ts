/** Counts what became of webhook attempts, on their way into the store. */
import type { WebhookStore } from '../../../db/contract/webhooks.ts'

export interface WebhookOutcomes {
  /** The same store, each recorded outcome counted once it is recorded. */
  counted(webhooks: WebhookStore): WebhookStore
  totals(): { delivered: number; retried: number; deadLettered: number }
}

export function makeWebhookOutcomes(): WebhookOutcomes {
  const totals = { delivered: 0, retried: 0, deadLettered: 0 }
  return {
    counted: (webhooks) => ({
      ...webhooks,
      async turn(command) {
        const result = await webhooks.turn(command)
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
