/** Finds the values of a field that were first stored in a range of arrivals, for the rule `new_vendor`. */
import type { Database } from '../../database.ts'
import type { NewValues, NewValuesQuery } from '../../../contract/store.ts'
import { isSliceOver, type Sliced } from '../../slices.ts'
import { readAhead, readBlock, zonesBetween } from '../blocks/block-table.ts'
import { isHash, member, termTexts } from '../blocks/fields.ts'
import { seqMax, seqOf } from '../blocks/block.ts'
import { fieldClause } from '../index/filter-codes.ts'
import { partsOf } from '../index/walk.ts'

interface Log {
  db: Database
  org: number
  hashSeed: number
}

/** Nearly every value occurs in the blocks just before the range. The index is read for the others only. */
const recentBlocks = 16

/** Events of `exceptKeys` make no value new, but a value that they had before is not new either. */
export function* readNewValues(
  log: Log,
  { field: name, arrivals, max }: NewValuesQuery,
  exceptKeys: ReadonlySet<number>,
): Sliced<NewValues> {
  const { db, org } = log
  const { afterSeq, untilSeq } = arrivals
  const field = member[name]
  const values: NewValues['values'] = []
  const knownValues = new Set<number | string>() // codes, or the texts of hashes
  yield* collectRecent(log, field, afterSeq, knownValues)
  const texts = termTexts(db, org, field)
  const zones = zonesBetween(db, org, afterSeq + 1, Math.min(untilSeq + 1, seqMax))
  for (const zone of readAhead(db, zones)) {
    if (isSliceOver()) yield
    const block = readBlock(db, zone)
    if (block === null) continue
    const end = Math.min(block.rows, untilSeq + 1 - block.firstSeq)
    for (let row = Math.max(0, afterSeq + 1 - block.firstSeq); row < end; row++) {
      const code = block.code(field, row)
      if (code === 0 || block.code(member.type, row) === 0) continue
      const value = isHash(code) ? block.hashedText(field, row) : (texts.get(code) ?? null)
      const key = isHash(code) ? value : code
      if (value === null || key === null || knownValues.has(key)) continue
      knownValues.add(key)
      if (exceptKeys.has(block.key(row)) || (yield* occursBefore(log, field, value, afterSeq))) continue
      values.push({ value, seq: block.firstSeq + row, receivedAtMs: block.received(row) })
      if (values.length >= max) return { values }
    }
  }
  return { values }
}

/** Adds the interned values of the last blocks up to an arrival. */
function* collectRecent(
  { db, org }: Log,
  field: number,
  lastSeq: number,
  knownValues: Set<number | string>,
): Sliced<void> {
  const firstSeq = Math.max(1, lastSeq - recentBlocks * 256)
  for (const zone of readAhead(db, zonesBetween(db, org, firstSeq, lastSeq + 1))) {
    if (isSliceOver()) yield
    const block = readBlock(db, zone)
    const end = block === null ? 0 : Math.min(block.rows, lastSeq + 1 - block.firstSeq)
    for (let row = 0; row < end; row++) {
      const code = block!.code(field, row)
      if (code !== 0 && !isHash(code) && block!.code(member.type, row) !== 0) knownValues.add(code)
    }
  }
}

/** Whether an arrival up to `lastSeq` has the value, searched newest first. */
function* occursBefore(
  { db, org, hashSeed }: Log,
  field: number,
  value: string,
  lastSeq: number,
): Sliced<boolean> {
  const clauses = [fieldClause(db, org, hashSeed, field, [value])]
  for (const part of partsOf(db, org, clauses, 0).reverse()) {
    if (part.firstSeq > lastSeq) continue
    if (isSliceOver()) yield
    const zones = part.zones().filter(({ place }) => seqOf(place) <= lastSeq)
    for (const zone of readAhead(db, zones.reverse())) {
      if (isSliceOver()) yield
      const block = readBlock(db, zone, clauses)
      const end = block === null ? 0 : Math.min(block.rows, lastSeq + 1 - block.firstSeq)
      for (let row = 0; row < end; row++)
        if (part.mayMatch(zone, row) && block!.matches(row, clauses)) return true
    }
  }
  return false
}
