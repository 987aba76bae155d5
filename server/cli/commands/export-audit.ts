/** `sightglass export audit`: the audit trail as JSON, as CSV, or as a proof that anyone can check. */
import type { AuditEntry, AuditHead, AuditRow, AuditTrim, Json } from '../../../db/contract/store.ts'
import { auditEntry } from '../../audit/entry.ts'
import { auditColumns, entryView } from '../../audit/export.ts'
import type { SignedHead } from '../../../db/contract/audit.ts'
import { emptyHead, openSigningKey, ringSigningKey, signHead } from '../../audit/signing.ts'
import { systemClock } from '../../clock.ts'
import { applianceOrgId } from '../../../db/contract/audit.ts'
import type { StoreAccess } from '../../runtime/store-access.ts'
import { numberOf, textOf, type Params, type WorkContext } from '../../runtime/work.ts'
import { csvRow } from '../../text/csv.ts'
import { command, type Invocation, type Noun } from '../command.ts'
import { requireOrg, withData } from '../data-command.ts'
import { toggle } from '../option.ts'
import { keyRingOf, orgOption } from '../options.ts'
import { fileOptions, openOutput } from './export.ts'
import { print } from '../print.ts'

const pageRows = 1_000

const options = {
  ...orgOption,
  ...fileOptions,
  proof: toggle('write the whole signed chain in a format that others can verify without Sightglass'),
} as const

export const exportAudit: Noun = {
  group: 'Data',
  commands: [
    command({
      name: 'export audit',
      summary: "write an organization's audit trail to a file",
      about: [
        'With --proof the file holds the whole chain with its hashes and a signed head. /docs/proof on the server describes the format and has a verifier of 30 lines that needs nothing from Sightglass. The audit trail records the export.',
      ],
      examples: [
        'sightglass export audit --format csv --out audit.csv',
        'sightglass export audit --org acme --proof --out acme-audit.jsonl',
      ],
      options,
      work: { begin, page },
      run,
    }),
  ],
}

async function run(invocation: Invocation<typeof options>): Promise<number> {
  const { out, yes, proof, org, json, 'data-dir': dataDir } = invocation.values
  const format = proof ? 'proof' : invocation.values.format
  const ring = invocation.values.database === null ? null : keyRingOf(invocation.values)
  return withData(invocation, 'write', async (data) => {
    const key = ring === null ? openSigningKey(dataDir) : ringSigningKey(ring)
    const output = openOutput(out, yes)
    const exportStart = (await data.call('export audit begin', { org, format })) as unknown as Begun
    const head = signHead(key, exportStart.orgId, exportStart.head, systemClock.now())
    const lines = format === 'proof' ? proofLines : format === 'csv' ? csvLines : jsonLines
    for await (const text of lines(data, head, exportStart.trim)) output.write(text)
    output.end()
    if (out !== null) {
      const count = head.count - (exportStart.trim?.count ?? 0)
      const summary = { path: out, format, count, head: { ...head } }
      print(json ? JSON.stringify(summary) : `Wrote ${count} entries to ${out}.`)
    }
    return 0
  })
}

interface Begun {
  orgId: string
  head: AuditHead
  trim: AuditTrim | null // where the chain begins after retention
}

/** Records the export, then returns the head of the chain with that record in it. */
async function begin({ store, clock }: WorkContext, params: Params): Promise<Json> {
  const org = textOf(params, 'org')
  // A chain outlives its organization, and the appliance has a chain of its own.
  const heads = await store.audit.heads()
  const orgId = org === applianceOrgId || heads[org] ? org : (await requireOrg(store, org)).id
  const act = { action: 'audit.exported', target: orgId, metadata: { format: textOf(params, 'format') } }
  await store.audit.append(auditEntry({ orgId, actor: 'cli' }, act, clock.now()))
  const { count, hash } = (await store.audit.heads())[orgId] ?? emptyHead
  const trim = (await store.audit.trims())[orgId]
  return { orgId, head: { count, hash }, trim: trim === undefined ? null : { ...trim } }
}

async function page({ store }: WorkContext, params: Params): Promise<Json> {
  const query = { orgId: textOf(params, 'orgId'), afterSeq: numberOf(params, 'afterSeq'), limit: pageRows }
  return (await store.audit.rows(query)).map((row) => ({ ...row }))
}

type Lines = AsyncGenerator<string>

/** Oldest first, as a verifier reads the chain. */
async function* proofLines(data: StoreAccess, head: SignedHead, trim: AuditTrim | null): Lines {
  yield JSON.stringify({ format: 'sightglass-audit-proof-1', head, ...(trim === null ? {} : { trim }) })
  for (let afterSeq = trim?.count ?? 0; afterSeq < head.count; afterSeq += pageRows)
    for (const row of await rowsOf(data, head, { afterSeq, upTo: head.count })) yield JSON.stringify(row)
}

/** The same lines as `POST /v1/audit/export`. */
async function* csvLines(data: StoreAccess, head: SignedHead, trim: AuditTrim | null): Lines {
  yield csvRow(auditColumns, false)
  for await (const row of newestFirst(data, head, trim)) {
    const { id, orgId, actor, action, target, metadata, occurredAt } = row
    yield csvRow([id, orgId, actor, action, target, metadata, occurredAt], true)
  }
}

async function* jsonLines(data: StoreAccess, head: SignedHead, trim: AuditTrim | null): Lines {
  const trimmedCount = trim?.count ?? 0
  yield '{"entries":['
  let comma = ''
  for await (const row of newestFirst(data, head, trim)) {
    yield comma + JSON.stringify(entryView(entryOf(row)))
    comma = ','
  }
  yield `],"count":${head.count - trimmedCount},"head":${JSON.stringify(head)}}`
}

/** The order of the API, so that both files compare equal. */
async function* newestFirst(
  data: StoreAccess,
  head: SignedHead,
  trim: AuditTrim | null,
): AsyncGenerator<AuditRow> {
  const trimmedCount = trim?.count ?? 0
  for (let upTo = head.count; upTo > trimmedCount; upTo -= pageRows) {
    const rows = await rowsOf(data, head, { afterSeq: Math.max(trimmedCount, upTo - pageRows), upTo })
    yield* rows.reverse()
  }
}

async function rowsOf(
  data: StoreAccess,
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
