/** Events by type in the current range, for the navigation: handed over by the open page, or fetched. */
import { nextPageParams } from './choose-range.ts'
import { api } from '../api/api.ts'
import { totals } from '../app/session.ts'

/** Fetched on pages that count nothing themselves; an old answer is better than none, so a failure changes nothing. */
export async function refreshTotals(): Promise<void> {
  const asked = `${nextPageParams()}`
  try {
    const found = await api.totals(new URLSearchParams(asked))
    if (asked === `${nextPageParams()}`) totals.value = found
  } catch {
    // The open page fetches its own data and shows its own errors.
  }
}
