/**
 * Counts what became of OpenTelemetry items by organization and instrumentation scope, for the ingest health page:
 * which library sends what is stored, and what is not. In memory, since the server started.
 */
import { cutChars } from '../text/text.ts'

/** What became of the items of one scope. */
export interface ScopeCount {
  scope: string // as sent; '' when the sender gave none
  mapped: number // to events, stored before or not
  modelCalls: number // not stored
  leftOut: number
  refused: number
}

export type Counted = Exclude<keyof ScopeCount, 'scope'>

export interface ScopeCounts {
  sinceMs: number
  add(orgId: string, counts: Iterable<ScopeCount>): void
  /** Of one organization, most items first. */
  list(orgId: string): ScopeCount[]
}

const scopeCharsMax = 200
const scopesPerOrgMax = 200
const orgsMax = 1_000
/** Of all scopes beyond the limit. No library has this name. */
const others = '(other)'

/** Adds one item to the counts of a request. */
export function countItem(counts: Map<string, ScopeCount>, scope: string, what: Counted): void {
  let known = counts.get(scope)
  if (known === undefined) {
    // A request has few scopes, unless its sender means harm.
    const name = counts.size < scopesPerOrgMax ? scope : others
    known = counts.get(name) ?? { scope: name, mapped: 0, modelCalls: 0, leftOut: 0, refused: 0 }
    counts.set(name, known)
  }
  known[what]++
}

export function makeScopeCounts(sinceMs: number): ScopeCounts {
  const byOrg = new Map<string, Map<string, ScopeCount>>()
  return {
    sinceMs,
    add(orgId, counts) {
      const known = byOrg.get(orgId) ?? new Map<string, ScopeCount>()
      if (!byOrg.has(orgId) && byOrg.size >= orgsMax) return
      byOrg.set(orgId, known)
      for (const { scope, ...added } of counts) {
        const cut = cutChars(scope, scopeCharsMax)
        const name = known.has(cut) || known.size < scopesPerOrgMax ? cut : others
        const sum = known.get(name) ?? { scope: name, mapped: 0, modelCalls: 0, leftOut: 0, refused: 0 }
        for (const what of Object.keys(added) as Counted[]) sum[what] += added[what]
        known.set(name, sum)
      }
    },
    list: (orgId) =>
      [...(byOrg.get(orgId)?.values() ?? [])].sort(
        (a, b) => itemsOf(b) - itemsOf(a) || (a.scope < b.scope ? -1 : 1),
      ),
  }
}

function itemsOf({ mapped, modelCalls, leftOut, refused }: ScopeCount): number {
  return mapped + modelCalls + leftOut + refused
}
