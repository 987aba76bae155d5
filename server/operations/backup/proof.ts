/** Decides whether a copy is the database it was taken from: what it holds lies between just before and just after. */
import type { CopyReport, DatabaseFacts, Inspection } from '../../../db/contract/backup.ts'
import type { AuditAnchor } from '../../../db/contract/store.ts'

/** The heads of a database as points that the chains of its copy must run through. */
export function anchorsOf(heads: DatabaseFacts['auditHeads'], source: string): AuditAnchor[] {
  return Object.entries(heads).map(([orgId, head]) => ({ orgId, ...head, source }))
}

/** What is wrong inside a database by itself. */
export function faultsOf({ faults, audit }: Inspection): string[] {
  const chains = audit.faults.map(({ orgId, position, kind, message }) => {
    return `audit chain of ${orgId}, position ${position}, ${kind}: ${message}`
  })
  return [...faults, ...chains]
}

/** What of the copy does not fit its source. */
export function differences(copy: DatabaseFacts, { before, after }: CopyReport): string[] {
  const found: string[] = []
  const between = (what: string, value: number, low: number, high: number) => {
    if (value < Math.min(low, high) || value > Math.max(low, high))
      found.push(`${what}: ${value} in the copy, ${low} before and ${high} after in the database`)
  }
  between('schema', copy.schema, before.schema, after.schema)
  for (const what of ['events', 'orgs', 'accounts', 'keys'] as const)
    between(what, copy[what], before[what], after[what])
  for (const [orgId, { count }] of Object.entries(after.auditHeads)) {
    const inCopy = copy.auditHeads[orgId]?.count ?? 0
    between(`audit entries of ${orgId}`, inCopy, before.auditHeads[orgId]?.count ?? 0, count)
  }
  return found
}
