/** Events by type in the current range, for the navigation: provided by the open page, or fetched. */
import { nextPageParams } from './choose-range.ts'
import { api } from '../api/api.ts'
import { totals } from '../app/session.ts'

/** Fetched on pages without counts. Ignores errors, because old counts are better than none. */
export async function refreshTotals(): Promise<void> {
  const asked = `${nextPageParams()}`
  try {
    const found = await api.totals(new URLSearchParams(asked))
    if (asked === `${nextPageParams()}`) totals.value = found
  } catch {
    // The open page shows its own errors.
  }
}
