/** `sightglass export audit`: an organization's trail as JSON, as CSV, or as a proof that needs nothing of ours. */
import type { AuditEntry, AuditHead, AuditRow, AuditTrim } from '../../db/store.ts'
import { auditColumns, entryView } from '../audit/export.ts'
import { signHead, type SignedHead } from '../audit/signed-head.ts'
import { openSigningKey } from '../audit/signing-key.ts'
import { systemClock } from '../clock.ts'
import type { Invocation } from '../config.ts'
import { csvRow } from '../http/csv.ts'
import { dataPlace } from './data-verbs.ts'
import { pageRows } from './export-audit-work.ts'
import { openData, type DataAccess } from './hand-over.ts'
import { applianceOrgId, requireOrg } from './org.ts'
import { openOutput } from './output.ts'
import { numberOf, textOf, type Params } from './params.ts'
import { print } from './print.ts'

export async function exportAudit({ values }: Invocation): Promise<number> {
  const { out, yes, proof, org, json } = values
  const format = proof ? 'proof' : values.format
  const key = openSigningKey(values['data-dir'])
  const data = await openData({ ...dataPlace(values), create: false })
  try {
    const output = openOutput(out, yes)
    const begun = (await data.call('export audit begin', { org, format })) as unknown as Begun
    const head = signHead(key, begun.orgId, begun.head, systemClock.now())
    for await (const text of lines(data, format, head, begun.trim)) output.write(text)
    output.end()
    if (out !== null) {
      const count = head.count - (begun.trim?.count ?? 0)
      const done = { path: out, format, count, head: { ...head } }
      print(json ? JSON.stringify(done) : `Wrote ${count} entries to ${out}.`)
    }
    return 0
  } finally {
    await data.close()
  }
}

interface Begun {
  orgId: string
  head: AuditHead
  trim: AuditTrim | null // where the chain begins
}

async function* lines(
  data: DataAccess,
  format: string,
  head: SignedHead,
  trim: AuditTrim | null,
): AsyncGenerator<string> {
  const begun = trim?.count ?? 0
  if (format === 'proof')
    yield JSON.stringify({ format: 'sightglass-audit-proof-1', head, ...(trim === null ? {} : { trim }) })
  if (format === 'csv') yield csvRow(auditColumns, false).trimEnd()
  if (format === 'json') yield '{"entries":['
  for (let afterSeq = begun; afterSeq < head.count; afterSeq += pageRows) {
    const rows = (await data.call('export audit page', {
      orgId: head.orgId,
      afterSeq,
    })) as unknown as AuditRow[]
    const page = rows.slice(0, head.count - afterSeq)
    for (const row of page) {
      const isLast = Number(row.position) === head.count
      if (format === 'proof') yield JSON.stringify(row)
      else if (format === 'csv')
        yield csvRow(
          auditColumns.map((name) => row[name as keyof AuditRow]),
          true,
        ).trimEnd()
      else yield JSON.stringify(entryView(entryOf(row))) + (isLast ? '' : ',')
    }
  }
  if (format === 'json') yield `],"count":${head.count - begun},"head":${JSON.stringify(head)}}`
}

function entryOf(row: AuditRow): AuditEntry {
  const { id, orgId, actor, action, target } = row
  const metadata = JSON.parse(row.metadata) as AuditEntry['metadata']
  return { id, orgId, actor, action, target, metadata, occurredAtMs: Date.parse(row.occurredAt) }
}
