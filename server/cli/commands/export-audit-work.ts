/** The work behind `export audit` on the side of whoever holds the folder: the row that tells of it, and the pages. */
import type { Json } from '../../../db/contract/store.ts'
import { auditEntry } from '../../audit/entry.ts'
import { emptyHead } from '../../audit/signing.ts'
import { applianceOrgId, requireOrg } from './org.ts'
import { numberOf, textOf, type Params } from '../../runtime/params.ts'
import type { VerbContext } from '../../runtime/verb-context.ts'

export const pageRows = 1_000

/** Writes the row that tells of the export, and returns head and beginning of the chain with it. */
export async function beginExport({ store, clock }: VerbContext, params: Params): Promise<Json> {
  const asked = textOf(params, 'org')
  // A chain outlives its organization, and the appliance has one of its own.
  const heads = await store.audit.heads()
  const orgId = asked === applianceOrgId || heads[asked] ? asked : (await requireOrg(store, asked)).id
  const act = { action: 'audit.exported', target: orgId, metadata: { format: textOf(params, 'format') } }
  await store.audit.append(auditEntry({ orgId, actor: 'cli' }, act, clock.now()))
  const { count, hash } = (await store.audit.heads())[orgId] ?? emptyHead
  const trim = (await store.audit.trims())[orgId]
  return { orgId, head: { count, hash }, trim: trim === undefined ? null : { ...trim } }
}

export async function exportPage({ store }: VerbContext, params: Params): Promise<Json> {
  const query = { orgId: textOf(params, 'orgId'), afterSeq: numberOf(params, 'afterSeq'), limit: pageRows }
  return (await store.audit.rows(query)).map((row) => ({ ...row }))
}
