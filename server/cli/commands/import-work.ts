/** The work behind `sightglass import`: takes its batches as ingest would. */
import type { Json } from '../../../db/contract/store.ts'
import { auditEntry } from '../../audit/entry.ts'
import type { Issue } from '../../errors.ts'
import { acceptEvents } from '../../ingest/accept.ts'
import { importKeyId } from '../../ingest/sender-ids.ts'
import { requireOrg } from './org.ts'
import { textOf, type Params } from '../../runtime/params.ts'
import type { VerbContext } from '../../runtime/verb-context.ts'

export const issuesShown = 20

/** One audit row for the whole import, before its first batch. */
export async function beginImport({ store, clock }: VerbContext, params: Params): Promise<Json> {
  const org = await requireOrg(store, textOf(params, 'org'))
  const act = { action: 'traces.imported', target: org.id, metadata: { file: textOf(params, 'path') } }
  await store.audit.append(auditEntry({ orgId: org.id, actor: 'cli' }, act, clock.now()))
  return { orgId: org.id }
}

export async function appendImport({ store, clock }: VerbContext, params: Params): Promise<Json> {
  const { records, positions, rejected } = acceptEvents(textOf(params, 'body'), 'application/x-ndjson', [])
  const issues: Issue[] = rejected.flatMap((one) => one.issues.slice(0, 1))
  let [accepted, deduped, railed] = [0, 0, 0]
  if (records.length > 0) {
    const orgId = textOf(params, 'orgId')
    const batch = { orgId, keyId: importKeyId, receivedAtMs: clock.now(), events: records }
    const result = await store.events.append(batch)
    accepted = result.accepted
    deduped = result.deduped
    railed = result.rejected.length
    for (const { index, member } of result.rejected) {
      const message = 'is one value too many for the organization'
      issues.push({ path: member, code: 'too_many', message, index: positions[index] ?? 0 })
    }
  }
  return {
    accepted,
    deduped,
    rejected: rejected.length + railed,
    issues: issues.slice(0, issuesShown).map((issue) => ({ ...issue })),
  }
}
