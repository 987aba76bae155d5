/**
 * Copies a whole database. The target itself is the record of how far the copy is: each pass compares both and writes
 * what differs, so it continues after any interruption, and a server may write to the source meanwhile. The last pass
 * runs while the source is frozen, and everything is compared after it.
 */
import { StoreError } from '../../contract/errors.ts'
import { verifyAudit } from '../audit/verify.ts'
import { auditTrims } from '../audit/trim.ts'
import { columnsOf, inTransaction, type Database } from '../database.ts'
import { readSeedBytes } from '../events/dedupe/fingerprints.ts'
import { copyBlocks, digestBlocks, orgsOf, writeOrgs } from './blocks.ts'
import { copyTable, digestTable, type Meter } from './rows.ts'
import { copiedTables, type CopiedTable } from './tables.ts'
import { readState, stateText, type StoredState } from './state.ts'
import { copyJudgedSince } from '../judged-since.ts'
import type { SignedHead } from '../../contract/audit.ts'
import type { CopyCheck, CopyRequest, CopyStep, CopyVerdict } from '../../contract/copy.ts'
import type { Sliced } from '../slices.ts'
import type { CopySource, CopyTarget } from './sides.ts'

export interface Copying {
  source: CopySource
  target: CopyTarget
  tables: CopiedTable[]
  request: CopyRequest
  isResumed: boolean
  report: CopyStep
}

/** Checks both ends and marks the target. Throws `conflict` when one of them has other data or is in use. */
export function beginCopy(source: CopySource, target: CopyTarget, request: CopyRequest): Copying {
  const seed = readSeedBytes(source.db)
  const sourceId = Bun.SHA256.hash(seed, 'hex').slice(0, 32)
  const targetState = readState(target.db)
  requireOpenSource(source.db, targetState, request)
  requireTarget(target.db, targetState, sourceId)
  const { from, now } = request
  const mark: StoredState = {
    role: 'target',
    other: from.name,
    sinceMs: targetState?.sinceMs ?? now,
    sourceId,
  }
  const tables = copiedTables(source, target)
  target.begin({ ...targetState, ...mark }, seed)
  const report: CopyStep = {
    phase: 'copy',
    pass: 0,
    rows: 0,
    rowsTotal: 0,
    bytes: 0,
    behind: 0,
    usedBy: null,
    verdict: null,
  }
  return { source, target, tables, request, isResumed: targetState !== null, report }
}

function requireOpenSource(db: Database, target: StoredState | null, { to }: CopyRequest): void {
  const state = readState(db)
  if (state?.role === 'target')
    throw new StoreError('conflict', `the source cannot be copied: ${stateText(state)}`)
  // A copy that ended between its last two steps continues.
  if (state !== null && (target === null || state.other !== to.name))
    throw new StoreError('conflict', stateText(state))
}

function requireTarget(db: Database, targetState: StoredState | null, sourceId: string): void {
  if (targetState?.role === 'source') throw new StoreError('conflict', stateText(targetState))
  if (targetState !== null && targetState.sourceId !== sourceId)
    throw new StoreError(
      'conflict',
      `the target has an unfinished copy of another database, ${targetState.other}: delete it or name an empty target`,
    )
  if (targetState !== null) return
  const has = (table: string) => db.query(`SELECT 1 FROM ${table} LIMIT 1`).get() !== null
  if (!['org', 'account', 'audit_entry', 'event_org'].some(has)) return
  const isCopy = Bun.SHA256.hash(readSeedBytes(db), 'hex').slice(0, 32) === sourceId
  throw new StoreError(
    'conflict',
    isCopy
      ? 'the target already holds a finished copy of this source: start the server there'
      : 'the target has other data: name an empty folder or database',
  )
}

/** A pass that is over so soon leaves little to the one after the server has stopped. */
const closeMs = 10_000

/** Steps of waiting between two passes. */
const waits = 5

/** Yields after each short step. Returns null when it has caught up with a source that is in use. */
export function* copyAll(copying: Copying): Sliced<CopyVerdict | null> {
  const { report, request } = copying
  let isFrozen = freeze(copying)
  const isUsed = !isFrozen
  for (let lastMs = Infinity; ;) {
    const startedMs = performance.now()
    yield* pass(copying, isFrozen)
    if (isFrozen) return yield* finish(copying)
    const tookMs = performance.now() - startedMs
    report.behind = behindOf(copying)
    const isClose = tookMs < closeMs || tookMs > lastMs * 0.7
    lastMs = tookMs
    if (isUsed && !request.finish && isClose) {
      report.phase = 'caught_up'
      return null
    }
    for (let wait = 0; request.finish && isClose && wait < waits && !isFrozen; wait++) {
      isFrozen = freeze(copying)
      if (isFrozen) break
      report.phase = 'wait'
      report.behind = behindOf(copying)
      yield
    }
  }
}

function freeze({ source, request, report }: Copying): boolean {
  try {
    source.freeze({ role: 'source', other: request.to.name, sinceMs: request.now })
    report.usedBy = null
    return true
  } catch (error) {
    const failure = source.failureOf(error)
    if (!(failure instanceof StoreError) || failure.kind !== 'locked') throw failure
    report.usedBy = failure.message
    return false
  }
}

/** Events of the source that have arrived since the target's newest. */
function behindOf({ source, target }: Copying): number {
  const copied = new Map(orgsOf(target.db).map(({ num, last }) => [num, last]))
  return orgsOf(source.db).reduce((sum, { num, last }) => sum + Math.max(0, last - (copied.get(num) ?? 0)), 0)
}

function* pass(copying: Copying, isFrozen: boolean): Sliced<void> {
  const { source, target, tables, report } = copying
  report.pass++
  report.phase = report.pass === 1 ? 'copy' : 'catch_up'
  report.rowsTotal = rowsIn(source.db, tables)
  begin(report)
  for (const { num } of orgsOf(source.db)) yield* copyBlocks(source, target, num, report)
  for (const table of tables) yield* copyTable({ source, target, table, meter: report, isFrozen })
  // Numbers of organizations last: what they count is there now, and arrivals since then are not.
  inTransaction(target.db, () => writeOrgs(target.db, orgsOf(source.db)))
}

function begin(meter: Meter): void {
  meter.rows = 0
  meter.bytes = 0
}

function rowsIn(db: Database, tables: readonly CopiedTable[]): number {
  const count = ({ name }: CopiedTable) =>
    db.query<{ n: number }>(`SELECT count(*) AS n FROM ${name}`).get()!.n
  const events = db.query<{ n: number | null }>('SELECT sum(events) AS n FROM event_block').get()?.n ?? 0
  return tables.reduce((sum, table) => sum + count(table), events)
}

function* finish(copying: Copying): Sliced<CopyVerdict> {
  const { source, target, request, report } = copying
  report.phase = 'compare'
  report.rowsTotal *= 2
  begin(report)
  const orgs = orgsOf(source.db)
  const references = target.prepare(source.numbers(), orgs, source.checkpoints() ?? [])
  const checks = [
    ...(yield* checkEvents(copying)),
    ...(yield* checkTables(copying)),
    ...checkpointsOf(copying),
  ]
  const numbers = isSameList(source.numbers(), target.numbers()) ? [] : ['the next row numbers differ']
  const { faults } = verifyAudit(target.db, '', [])
  const chains = faults.map(
    ({ orgId, position, message }) => `audit trail of ${orgId}, entry ${position}: ${message}`,
  )
  const isEqual = checks.every(
    (check) => check.source.rows === check.target.rows && check.source.digest === check.target.digest,
  )
  const verdict = { equal: isEqual, checks, faults: [...references, ...numbers, ...chains] }
  if (!isEqual || verdict.faults.length > 0) return { ...verdict, equal: false }
  copyJudgedSince(source.db, target.db)
  // The source first: at no moment can both be served.
  source.seal({ role: 'source', other: request.to.name, sinceMs: request.now })
  target.complete()
  return verdict
}

function isSameList(a: { [name: string]: number }, b: { [name: string]: number }): boolean {
  const list = (numbers: { [name: string]: number }) => JSON.stringify(Object.entries(numbers).toSorted())
  return list(a) === list(b)
}

/** The events of all organizations as one row, and the organizations themselves. */
function* checkEvents({ source, target, report }: Copying): Sliced<CopyCheck[]> {
  const sides = []
  for (const side of [source, target]) {
    const hash = new Bun.CryptoHasher('sha256')
    const totals = { events: 0, ids: 0, idsKnown: 0 }
    const orgs = orgsOf(side.db)
    for (const { num } of orgs) {
      const { events, ids } = yield* digestBlocks(side.db, num, report)
      hash.update(`${num} ${events.digest}\n`)
      totals.events += events.rows
      totals.ids += ids
      totals.idsKnown += (side === target ? target.ids.count(num) : null) ?? ids
    }
    const orgsDigest = Bun.SHA256.hash(JSON.stringify(orgs), 'hex')
    sides.push({ ...totals, digest: hash.digest('hex'), orgs: { rows: orgs.length, digest: orgsDigest } })
  }
  const [from, to] = sides as [(typeof sides)[0], (typeof sides)[0]]
  return [
    {
      name: 'events',
      source: { rows: from.events, digest: from.digest },
      target: { rows: to.events, digest: to.digest },
    },
    { name: 'ids', source: { rows: from.ids, digest: '' }, target: { rows: to.idsKnown, digest: '' } },
    { name: 'event_org', source: from.orgs, target: to.orgs },
  ]
}

function* checkTables({ source, target, tables, report }: Copying): Sliced<CopyCheck[]> {
  const checks: CopyCheck[] = []
  for (const table of tables) {
    const from = yield* digestTable(source, table, target.refusesNul, report)
    checks.push({
      name: table.name,
      source: from,
      target: yield* digestTable(target, table, false, report),
    })
  }
  return checks
}

function checkpointsOf({ source, target }: Copying): CopyCheck[] {
  const counted = (list: readonly SignedHead[]) => {
    const rows = list.map(({ orgId, count, hash, at: signedAt, key, signature }) => [
      orgId,
      count,
      hash,
      signedAt,
      key,
      signature,
    ])
    return { rows: list.length, digest: Bun.SHA256.hash(JSON.stringify(rows), 'hex') }
  }
  const copied = target.checkpoints()
  if (copied === null) return []
  return [{ name: 'audit_checkpoint', source: counted(source.checkpoints() ?? []), target: counted(copied) }]
}

/** What the keys of the target must be able to decrypt and to vouch for. */
export function keysOf({ db, checkpoints }: CopySource): { keyIds: string[]; signingKeys: string[] } {
  const sealed = columnsOf(db).filter(
    ({ column }) => column.startsWith('sealed_') || column.includes('_sealed_'),
  )
  const texts = sealed.flatMap(({ table, column }) =>
    db
      .query<{ text: string }>(
        `SELECT DISTINCT substr("${column}", 1, 11) AS text FROM ${table} WHERE "${column}" IS NOT NULL`,
      )
      .all()
      .map(({ text }) => text),
  )
  const ids = texts.flatMap((text) => /^v1\.([0-9a-f]{8})/.exec(text)?.slice(1) ?? [])
  const signed = [...Object.values(auditTrims(db)), ...(checkpoints() ?? [])]
  return { keyIds: [...new Set(ids)], signingKeys: [...new Set(signed.map(({ key }) => key))] }
}
