/** Verifies every audit chain row by row and names the first changed row of each. */
import { applianceOrgId, auditHash, positionText } from '../../contract/audit.ts'
import type { Database } from '../database.ts'
import type {
  AuditAnchor,
  AuditFault,
  AuditHead,
  AuditRow,
  AuditTrim,
  AuditVerdict,
} from '../../contract/store.ts'
import { evidenceState } from './evidence.ts'
import { auditTrims, untrimmed } from './trim.ts'
import { auditColumns, auditHeads } from './append.ts'
import { readAuditHeads } from './heads.ts'

type Row = AuditRow & { rowid: number }
type Chain = { db: Database; begun: number } // `begun`: entries before the start of the chain
type FaultOf = Omit<AuditFault, 'orgId'>

/**
 * Reads the heads file first, because a running writer may extend the chains meanwhile, but never the file alone. An
 * engine without files has none.
 * `anchors` are heads that were recorded elsewhere before any truncation.
 */
export function verifyAudit(db: Database, folder: string, anchors: AuditAnchor[]): AuditVerdict {
  const heads = folder === '' ? null : readAuditHeads(folder)
  const inFile = Object.entries(heads ?? {}).map(([orgId, head]): AuditAnchor => ({
    orgId,
    ...head,
    source: 'the file audit-heads',
  }))
  const anchorsOf = Map.groupBy([...inFile, ...anchors], ({ orgId }) => orgId)
  db.run(db.dialect.beginRead)
  try {
    const tableHeads = auditHeads(db)
    const trims = auditTrims(db)
    const withRows = db.query<{ orgId: string }, []>('SELECT DISTINCT orgId FROM audit_entry').all()
    const orgIds = new Set([
      ...withRows.map((row) => row.orgId),
      ...Object.keys(tableHeads),
      ...Object.keys(trims),
      ...anchorsOf.keys(),
    ])
    const verdict: AuditVerdict = { chains: [], faults: [], evidence: evidenceState({ db }) }
    for (const orgId of [...orgIds].sort()) {
      const trim = trims[orgId] ?? null
      const chainEvidence = { trim, head: tableHeads[orgId] ?? null, anchors: anchorsOf.get(orgId) ?? [] }
      const { count, hash, fault } = verifyChain(db, orgId, chainEvidence)
      verdict.chains.push({ orgId, count, hash, trim })
      if (fault !== null) verdict.faults.push({ orgId, ...fault })
    }
    if (orgIds.size === 0 && hasOrgs(db)) verdict.faults.push(noChain)
    return verdict
  } finally {
    db.run('COMMIT')
  }
}

/** Every organization was created with an entry. */
function hasOrgs(db: Database): boolean {
  return db.query<{ id: string }>('SELECT id FROM org LIMIT 1').get() !== null
}

const noChain: AuditFault = {
  orgId: applianceOrgId,
  position: 1,
  entryId: null,
  kind: 'cut',
  message: 'there are organizations, but not one audit entry',
}

interface Known {
  trim: AuditTrim | null
  head: AuditHead | null
  anchors: AuditAnchor[]
}

function verifyChain(db: Database, orgId: string, { trim, head, anchors }: Known) {
  const anchorsAt = Map.groupBy(anchors, ({ count }) => count)
  let { count, hash } = trim ?? untrimmed
  const startCount = count
  const atTrim = trimFault(count, hash, anchorsAt.get(count) ?? [])
  if (atTrim !== null) return { count, hash, fault: atTrim }
  let rowid = 0
  const rows = db
    .query<Row, [string, string]>(
      `SELECT rowid, ${auditColumns} FROM audit_entry WHERE orgId = ? AND position > ? ORDER BY position`,
    )
    .iterate(orgId, positionText(count))
  for (const row of rows) {
    const fault =
      rowFault({ db, begun: startCount }, row, count + 1, hash, rowid) ??
      anchorFault(row, count + 1, anchorsAt.get(count + 1) ?? [])
    if (fault !== null) return { count, hash, fault }
    count++
    hash = row.hash
    rowid = row.rowid
  }
  return { count, hash, fault: endFault(count, hash, head, anchors) }
}

function rowFault(
  chain: Chain,
  row: Row,
  position: number,
  prevHash: string,
  rowidBefore: number,
): FaultOf | null {
  const place = { position, entryId: row.id }
  const sound = auditHash(row) === row.hash
  if (row.position === positionText(position)) {
    if (!sound)
      return (
        reorderFault(chain, row, position) ?? { ...place, kind: 'edited', message: 'the entry was edited' }
      )
    if (row.prevHash !== prevHash) {
      return { ...place, kind: 'rewritten', message: 'the entry does not follow from the one before it' }
    }
    if (row.rowid <= rowidBefore) {
      return { ...place, kind: 'reordered', message: 'the entry lies before one that is older' }
    }
    return null
  }
  const moved = sound ? null : reorderFault(chain, row, position)
  return (
    moved ?? { position, entryId: null, kind: 'missing', message: 'the entry at this position is missing' }
  )
}

/** An intact row at the wrong position was moved. Searched only once, at the first bad row. */
function reorderFault({ db, begun: startCount }: Chain, row: Row, position: number): FaultOf | null {
  const rows =
    db.query<{ n: number }, [string]>('SELECT count(*) AS n FROM audit_entry WHERE orgId = ?').get(row.orgId)
      ?.n ?? 0
  for (let home = startCount + 1; home <= startCount + rows + 1; home++) {
    if (auditHash({ ...row, position: positionText(home) }) !== row.hash) continue
    const message = `the entry belongs at position ${home}`
    return { position, entryId: row.id, kind: 'reordered', message }
  }
  return null
}

/** A head recorded where the chain now begins must match the trim. */
function trimFault(position: number, hash: string, anchors: AuditAnchor[]): FaultOf | null {
  const conflictAnchor = position === 0 ? undefined : anchors.find((anchor) => anchor.hash !== hash)
  if (conflictAnchor === undefined) return null
  const message = `the chain begins after a different entry than ${conflictAnchor.source} recorded`
  return { position, entryId: null, kind: 'forged', message }
}

/** A recorded head may be old: it is compared with the row that was the newest when it was recorded. */
function anchorFault(row: Row, position: number, anchors: AuditAnchor[]): FaultOf | null {
  const conflictAnchor = anchors.find(({ hash }) => hash !== row.hash)
  if (conflictAnchor === undefined) return null
  const message = `the chain up to this entry differs from the one that ${conflictAnchor.source} recorded`
  return { position, entryId: row.id, kind: 'rewritten', message }
}

function endFault(
  count: number,
  hash: string,
  tableHead: AuditHead | null,
  anchors: AuditAnchor[],
): FaultOf | null {
  const writtenCount = Math.max(tableHead?.count ?? 0, ...anchors.map((anchor) => anchor.count))
  if (writtenCount > count) {
    const message = `the newest entries are missing: ${writtenCount} were written, ${count} are there`
    return { position: count + 1, entryId: null, kind: 'cut', message }
  }
  if (tableHead === null || tableHead.count !== count || tableHead.hash !== hash) {
    const message = 'the head of the chain does not match its last entry'
    return { position: count, entryId: null, kind: 'rewritten', message }
  }
  return null
}
