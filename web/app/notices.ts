/** Notices above every page: open alerts, and endpoints that need attention. */
import { signal } from '@preact/signals'
import { type Notice, webhookApi } from '../api/webhook-api.ts'

export const notices = signal<Notice[]>([])

/** Rules are evaluated once per minute. */
export const refreshMs = 30_000

/** Ignores errors: old notices are better than none, and the page shows its own errors. */
export async function refreshNotices(): Promise<void> {
  try {
    notices.value = await webhookApi.notices()
  } catch {
    // The notices stay as they are.
  }
}

/** Leaves out endpoints that fail right now: the next attempt may succeed, and the endpoint list shows it. */
export function urgent(noticeList: Notice[]): Notice[] {
  return noticeList.filter(({ code }) => code !== 'endpoint_failing')
}
