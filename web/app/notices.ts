/** What people must be told on every page: alerts that are open, endpoints that need somebody. */
import { signal } from '@preact/signals'
import { type Notice, webhookApi } from '../api/webhook-api.ts'

export const notices = signal<Notice[]>([])

/** Rules are looked at once a minute. */
export const refreshMs = 30_000

/** An old answer is better than none, and the page that is shown says itself what fails. */
export async function refreshNotices(): Promise<void> {
  try {
    notices.value = await webhookApi.notices()
  } catch {
    // Kept as it was.
  }
}

/** That an endpoint fails right now is said beside its name; it may be over with the next attempt. */
export function pressing(all: Notice[]): Notice[] {
  return all.filter(({ code }) => code !== 'endpoint_failing')
}
