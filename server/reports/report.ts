/** Drafts the report of an organization over a range: reads its counts and writes the page, ready to be signed. */
import { isoTime } from '../clock.ts'
import { detectClaims } from '../counts/claims.ts'
import { analyticsCounts, detectRequests } from '../counts/counts.ts'
import type { Period } from '../counts/period.ts'
import { limits } from '../limits.ts'
import { reportPage, totalsOf, type Total } from './page.ts'
import type { ReportFacts } from './proof.ts'
import type { Org, Store } from '../../db/contract/store.ts'

export interface ReportDraft {
  body: string // for `signReport`
  facts: ReportFacts
  totals: Total[]
  fileName: string
}

/** `period` without filters. `publicKey` is that of the key that will sign it. */
export async function draftReport(
  store: Pick<Store, 'events' | 'sites' | 'accessLogs' | 'keys' | 'health'>,
  org: Pick<Org, 'id' | 'name' | 'slug'>,
  period: Period,
  publicKey: string,
): Promise<ReportDraft> {
  const scope = { store, orgId: org.id, period, rowsMax: limits.reportRowsMax }
  const [counts, requests, { impostors }] = await Promise.all([
    analyticsCounts(scope),
    detectRequests(scope),
    detectClaims(scope),
  ])
  const { since, until } = counts.period
  const createdAt = isoTime(period.nowMs)
  const facts = { orgId: org.id, org: org.name, since, until, at: createdAt, events: counts.all.count }
  return {
    body: reportPage({ facts, key: publicKey, counts, requests, impostors }),
    facts,
    totals: totalsOf(counts),
    fileName: `sightglass-${org.slug}-${since.slice(0, 10)}-${until.slice(0, 10)}.html`,
  }
}
