/** Passed to a conformance case: an open store, its own organization, and a way to open other folders. */
import { expect } from 'bun:test'
import { StoreError } from '../../db/contract/errors.ts'
import type { AuditEntry, EventFilter, Store } from '../../db/contract/store.ts'

export type OpenFolder = (folder: string) => Promise<Store>

export interface Subject {
  store: Store
  orgId: string // unique per case
  open: OpenFolder
}

/** Two stores on one database, each of which acts as a node of its own. */
export type OpenNodes = (folder: string) => Promise<readonly [Store, Store]>

export interface NodeSubject {
  store: Store
  another: Store
  orgId: string // unique per case
}

export type NodeCases = { [name: string]: (subject: NodeSubject) => Promise<void> }

export type Cases = { [name: string]: (subject: Subject) => Promise<void> }

/** The StoreError with which a promise rejects; anything else fails the test. */
export async function failure(promise: Promise<unknown>): Promise<StoreError> {
  const ended = await promise.then(
    (result) => ({ result }),
    (error: unknown) => ({ error }),
  )
  if ('error' in ended && ended.error instanceof StoreError) return ended.error
  throw new Error(`expected a StoreError, got ${JSON.stringify(ended)} ${String(Object.values(ended)[0])}`)
}

/** Every audit entry of the organization, newest first, read in pages. */
export async function auditOf(store: Store, orgId: string): Promise<AuditEntry[]> {
  const entries: AuditEntry[] = []
  let beforeSeq: number | null = null
  do {
    const page: Awaited<ReturnType<Store['audit']['list']>> = await store.audit.list({
      orgId,
      limit: 7,
      beforeSeq,
    })
    entries.push(...page.entries)
    beforeSeq = page.next
  } while (beforeSeq !== null)
  return entries
}

/** Counts to `ceilingSeq` in as many steps as it takes: each step ends after 100 ms. */
export async function countAll(
  store: Store,
  orgId: string,
  filter: EventFilter,
  ceilingSeq: number,
): Promise<number> {
  let total = 0
  for (let afterSeq = 0; afterSeq < ceilingSeq;) {
    const step = await store.events.count({ orgId, filter, afterSeq, ceilingSeq })
    expect(step.lastSeq).toBeGreaterThan(afterSeq)
    total += step.count
    afterSeq = step.lastSeq
  }
  return total
}

/** Runs `verb` and checks that it wrote exactly this entry. */
export async function writesOnce<T>(store: Store, audit: AuditEntry, verb: () => Promise<T>): Promise<T> {
  const entriesBefore = await auditOf(store, audit.orgId)
  const result = await verb()
  const entriesAfter = await auditOf(store, audit.orgId)
  expect(entriesAfter.length).toBe(entriesBefore.length + 1)
  expect(entriesAfter[0]).toMatchObject(audit)
  return result
}

/** Runs `verb`, which must fail or change nothing, and checks that no entry was written. */
export async function writesNothing<T>(store: Store, orgId: string, verb: () => Promise<T>): Promise<T> {
  const entriesBefore = await auditOf(store, orgId)
  const result = await verb()
  expect(await auditOf(store, orgId)).toEqual(entriesBefore)
  return result
}
