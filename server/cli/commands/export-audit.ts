/** `sightglass export audit`: an organization's trail as JSON, as CSV, or as a proof that needs nothing of ours. */
import type { AuditEntry, AuditHead, AuditRow, AuditTrim } from '../../../db/contract/store.ts'
import { auditColumns, entryView } from '../../audit/export.ts'
import { signHead, type SignedHead } from '../../audit/signing.ts'
import { openSigningKey } from '../../audit/signing.ts'
import { systemClock } from '../../clock.ts'
import type { Invocation } from '../config.ts'
import { csvRow } from '../../text/csv.ts'
import { dataPlace } from './data-verbs.ts'
import { pageRows } from './export-audit-work.ts'
import { openData, type DataAccess } from '../../runtime/store-access.ts'
import { applianceOrgId, requireOrg } from './org.ts'
import { openOutput } from '../output.ts'
import { numberOf, textOf, type Params } from '../../runtime/params.ts'
import { print } from '../print.ts'

export async function exportAudit({ values }: Invocation): Promise<number> {
  const { out, yes, proof, org, json } = values
  const format = proof ? 'proof' : values.format
  const key = openSigningKey(values['data-dir'])
  const data = await openData({ ...dataPlace(values), create: false })
  try {
    const output = openOutput(out, yes)
    const begun = (await data.call('export audit begin', { org, format })) as unknown as Begun
    const head = signHead(key, begun.orgId, begun.head, systemClock.now())
    const written = format === 'proof' ? proofLines : format === 'csv' ? csvLines : jsonLines
    for await (const text of written(data, head, begun.trim)) output.write(text)
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

/** The chain as it grew: whoever checks it goes the same way. */
async function* proofLines(
  data: DataAccess,
  head: SignedHead,
  trim: AuditTrim | null,
): AsyncGenerator<string> {
  yield JSON.stringify({ format: 'sightglass-audit-proof-1', head, ...(trim === null ? {} : { trim }) })
  for (let afterSeq = trim?.count ?? 0; afterSeq < head.count; afterSeq += pageRows)
    for (const row of await rowsOf(data, head, { afterSeq, upTo: head.count })) yield JSON.stringify(row)
}

/** The very lines that `POST /v1/audit/export` gives. */
async function* csvLines(data: DataAccess, head: SignedHead, trim: AuditTrim | null): AsyncGenerator<string> {
  yield csvRow(auditColumns, false)
  for await (const { id, orgId, actor, action, target, metadata, occurredAt } of newestFirst(
    data,
    head,
    trim,
  ))
    yield csvRow([id, orgId, actor, action, target, metadata, occurredAt], true)
}

async function* jsonLines(
  data: DataAccess,
  head: SignedHead,
  trim: AuditTrim | null,
): AsyncGenerator<string> {
  const begun = trim?.count ?? 0
  yield '{"entries":['
  let comma = ''
  for await (const row of newestFirst(data, head, trim)) {
    yield comma + JSON.stringify(entryView(entryOf(row)))
    comma = ','
  }
  yield `],"count":${head.count - begun},"head":${JSON.stringify(head)}}`
}

/** In the order of the API: who compares both finds the same file. */
async function* newestFirst(
  data: DataAccess,
  head: SignedHead,
  trim: AuditTrim | null,
): AsyncGenerator<AuditRow> {
  const begun = trim?.count ?? 0
  for (let upTo = head.count; upTo > begun; upTo -= pageRows) {
    const rows = await rowsOf(data, head, { afterSeq: Math.max(begun, upTo - pageRows), upTo })
    yield* rows.reverse()
  }
}

async function rowsOf(
  data: DataAccess,
  { orgId }: SignedHead,
  { afterSeq, upTo }: { afterSeq: number; upTo: number },
): Promise<AuditRow[]> {
  const rows = (await data.call('export audit page', { orgId, afterSeq })) as unknown as AuditRow[]
  return rows.filter(({ position }) => Number(position) <= upTo)
}

function entryOf(row: AuditRow): AuditEntry {
  const { id, orgId, actor, action, target } = row
  const metadata = JSON.parse(row.metadata) as AuditEntry['metadata']
  return { id, orgId, actor, action, target, metadata, occurredAtMs: Date.parse(row.occurredAt) }
}
