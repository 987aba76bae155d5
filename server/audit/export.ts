/** Exports audit entries as JSON or CSV (contract §8), page by page, including the entry of the export itself. */
import { isoTime, type Clock } from '../clock.ts'
import { csvRow } from '../text/csv.ts'
import { acquireExport, streamText } from '../http/response.ts'
import { limits } from '../limits.ts'
import { emptyHead, signHead, type SigningKey } from './signing.ts'
import { auditEntry, type Actor } from './entry.ts'
import type { AuditEntry, AuditFilter, Store } from '../../db/contract/store.ts'
import type { Share, Shares } from '../http/shares.ts'
import type { Log } from '../log.ts'

export interface AuditExportServices {
  store: Store
  clock: Clock
  log: Log
  auditKey: SigningKey
  exportShares: Shares
}

export interface ExportBody {
  format: 'json' | 'csv'
  raw: boolean
  filter: AuditFilter
}

export const auditColumns = ['id', 'orgId', 'actor', 'action', 'target', 'metadata', 'occurredAt']

const pageEntries = 500

/** Responds after the entry of the export is durable; the signed head covers exactly the exported entries. */
export async function exportAudit(
  services: AuditExportServices,
  actor: Actor,
  body: ExportBody,
): Promise<Response> {
  const share = acquireExport(services.exportShares, actor.orgId, actor.actor)
  try {
    return await begin(services, actor, body, share)
  } catch (error) {
    share.release()
    throw error
  }
}

async function begin(
  services: AuditExportServices,
  actor: Actor,
  { format, raw, filter }: ExportBody,
  share: Share,
): Promise<Response> {
  const { store, clock, log, auditKey } = services
  const now = clock.now()
  const metadata = { format, filter: { ...filter } }
  await store.audit.append(
    auditEntry(actor, { action: 'audit.exported', target: actor.orgId, metadata }, now),
  )
  const head = (await store.audit.heads())[actor.orgId] ?? emptyHead
  const entries = walkAudit(store, { orgId: actor.orgId, filter, beforeSeq: head.count + 1 })
  const ended = (failed: unknown) => {
    share.release()
    if (failed !== null) log.warn('export_incomplete', { message: String(failed) })
  }
  if (format === 'csv') {
    const headers = {
      'content-type': 'text/csv; charset=utf-8',
      'content-disposition': `attachment; filename="audit-${actor.orgId}.csv"`,
      'x-csv-formula-guard': raw ? 'off' : 'on',
    }
    const parts = csvParts(entries, !raw)
    return new Response(streamText({ parts, stallMs: limits.exportStallMs, ended }), { headers })
  }
  const signed = signHead(auditKey, actor.orgId, head, now)
  const body = streamText({ parts: jsonParts(entries, signed), stallMs: limits.exportStallMs, ended })
  return new Response(body, { headers: { 'content-type': 'application/json' } })
}

/** Pages of entries, newest first, before a position. */
async function* walkAudit(
  store: Pick<Store, 'audit'>,
  from: { orgId: string; filter: AuditFilter; beforeSeq: number | null },
): AsyncGenerator<AuditEntry[]> {
  let { beforeSeq } = from
  do {
    const page = await store.audit.list({ ...from, beforeSeq, limit: pageEntries })
    if (page.entries.length > 0) yield page.entries
    beforeSeq = page.next
  } while (beforeSeq !== null)
}

/** An entry as the API returns it. */
export function entryView({ id, orgId, actor, action, target, metadata, occurredAtMs }: AuditEntry) {
  return { id, orgId, actor, action, target, metadata, occurredAt: isoTime(occurredAtMs) }
}

export type AuditEntryView = ReturnType<typeof entryView>

async function* jsonParts(pages: AsyncGenerator<AuditEntry[]>, head: unknown): AsyncGenerator<string> {
  let count = 0
  yield '{"entries":['
  for await (const entries of pages) {
    const text = entries.map((entry) => JSON.stringify(entryView(entry))).join(',')
    yield count === 0 ? text : `,${text}`
    count += entries.length
  }
  yield `],"count":${count},"head":${JSON.stringify(head)}}`
}

async function* csvParts(pages: AsyncGenerator<AuditEntry[]>, guard: boolean): AsyncGenerator<string> {
  yield csvRow(auditColumns, false)
  for await (const entries of pages) yield entries.map((entry) => csvLine(entry, guard)).join('')
}

function csvLine(entry: AuditEntry, guard: boolean): string {
  const { id, orgId, actor, action, target, metadata, occurredAt } = entryView(entry)
  return csvRow([id, orgId, actor, action, target, JSON.stringify(metadata), occurredAt], guard)
}
