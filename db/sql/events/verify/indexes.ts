/** Verifies the id runs and segment indexes: each must lead to every row that a lookup needs. */
import { readColumns, readZones, zonesBetween, type Zone } from '../blocks/block-table.ts'
import { member, members } from '../blocks/fields.ts'
import { segmentEvents, seqOf } from '../blocks/block.ts'
import { hasBit, newBitmap, postingReader } from '../index/posting.ts'
import { noOffset, segmentPaths, segmentSample, type PathColumn } from '../paths/columns.ts'
import { isSameSample } from '../paths/session-sample.ts'
import { inText, noHour, shredder, type ShreddedPath } from '../paths/shred.ts'
import { fingerprintOf } from '../dedupe/fingerprints.ts'
import { type Span, spansOf } from '../dedupe/id-run.ts'
import { runChecks } from '../dedupe/id-group.ts'
import { readBlob } from '../blocks/body-table.ts'
import { openIds } from '../blocks/texts.ts'
import { blockName, type Check, type Report, type VerifiedOrg } from './blocks.ts'
import type { Database } from '../../database.ts'

/** Checks that dedupe finds every id that was written to a run, filter first. */
type Print = (org: number, id: string) => number

/** The runs that exist when it begins, newest first. Retention may delete old ones meanwhile. */
export function* verifyIds(db: Database, org: number, print: Print, report: Report): Check {
  const checkOf = runChecks(db)
  for (let runBound = Infinity; ;) {
    const span = spansOf(db, org).find(({ run }) => run < runBound)
    if (span === undefined) return
    verifyRun(db, { org, span, isKnown: checkOf(span.run) }, print, report)
    runBound = span.run
    yield
  }
}

interface VerifiedRun {
  org: number
  span: Span
  isKnown(fingerprint: number, offset: number): boolean
}

function verifyRun(db: Database, { org, span, isKnown }: VerifiedRun, print: Print, report: Report): void {
  const { run, firstSeq, lastSeq } = span
  for (const zone of zonesBetween(db, org, firstSeq, lastSeq + 1)) {
    const ids = openIds(readBlob(db, zone.place, 'ids')!, zone.events)
    ids.forEach((id, row) => {
      const seq = seqOf(zone.place) + row
      const fingerprint = fingerprintOf(id, (text) => print(org, text))
      if (fingerprint === null || seq < firstSeq || seq > lastSeq) return
      if (!isKnown(fingerprint, seq - firstSeq))
        report(blockName(zone), `the id of arrival ${seq} is not in id run ${run}`)
    })
  }
}

/** The segments that are sealed when it begins. */
export function* verifySegments(db: Database, { num, segments }: VerifiedOrg, report: Report): Check {
  for (let segment = 0; segment < segments; segment++) {
    verifySegment(db, num, segment, report)
    yield
    verifyPaths(db, num, segment, report)
    yield
  }
}

/** Compares the path columns of a segment with its events. One that has none yet is read without them. */
function verifyPaths(db: Database, org: number, segment: number, report: Report): void {
  const first = segment * segmentEvents
  const location = `the path columns of arrivals ${first} to ${first + segmentEvents - 1}`
  try {
    const stored = segmentPaths(db, org, segment)
    if (stored === null) return
    const shredding = shredder(db, org, segment)
    while (shredding.step());
    const events = shredding.result()
    if (events === null) return
    const { base = 0, offsets } = stored.hours ?? {}
    const isWrong = (offset: number, eventIndex: number) =>
      events.hours[eventIndex] !== (offset === noOffset ? noHour : base + offset)
    if (offsets?.some(isWrong)) report(location, 'say another hour')
    for (const path of events.paths) {
      const column = stored.column(path.path)
      const differencePosition = column === null || path.values === null ? -1 : firstDifference(path, column)
      if (differencePosition >= 0)
        report(location, `differ from arrival ${first + differencePosition} in ${JSON.stringify(path.path)}`)
    }
    const sample = segmentSample(db, org, segment)
    if (sample !== null && (events.sample === null || !isSameSample(sample, events.sample)))
      report(location, 'differ in the sample of sessions')
  } catch (error) {
    report(location, `cannot be read: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** The first position at which a column has another value than the events; -1 for none. */
function firstDifference({ values, positions, codes, entries }: ShreddedPath, column: PathColumn): number {
  const columnCodes = new Map<number, number>([[inText, column.inText]]) // code -> that of the column
  let next = 0
  for (let position = 0; position < segmentEvents; position++) {
    const isEntry = next < entries && positions[next] === position
    const code = isEntry ? codes[next++]! : null
    const columnCode = column.codes[position]!
    if (code !== null && !columnCodes.has(code) && column.values[columnCode]?.equals(values!.values[code]!))
      columnCodes.set(code, columnCode)
    if (columnCode !== (code === null ? 0 : columnCodes.get(code))) return position
  }
  return -1
}

function verifySegment(db: Database, org: number, segment: number, report: Report): void {
  const postings = postingReader(db)
  const first = segment * segmentEvents
  const location = `the index of arrivals ${first} to ${first + segmentEvents - 1}`
  const blocks = zonesBetween(db, org, first, first + segmentEvents)
  const version = versionOf(db, org, segment)
  verifyZones(db, { org, segment }, blocks, (problem) => report(location, problem))
  const bitmap = newBitmap()
  const indexed = members.filter(({ filter, indexVersion }) => filter !== null && indexVersion <= version)
  const positionsByField = positionsByCode(
    db,
    blocks,
    first,
    indexed.map(({ number }) => number),
  )
  for (const [fieldIndex, { name, number: index }] of indexed.entries()) {
    for (const [code, positions] of positionsByField[fieldIndex]!) {
      bitmap.fill(0)
      try {
        postings.add(bitmap, org, segment, index, code)
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error)
        report(location, `cannot be read for its ${name}: ${reason}`)
        continue
      }
      const missing = positions.find((position) => !hasBit(bitmap, position))
      if (missing !== undefined)
        report(location, `does not lead to arrival ${first + missing} by its ${name}`)
    }
  }
}

function versionOf(db: Database, org: number, segment: number): number {
  const sql = 'SELECT index_version AS version FROM event_segment WHERE org = ? AND segment = ?'
  return db.query<{ version: number }, [number, number]>(sql).get(org, segment)?.version ?? Infinity
}

/** A page reads a block only when the segment lists it within the requested times. */
function verifyZones(
  db: Database,
  { org, segment }: { org: number; segment: number },
  blocks: Zone[],
  report: (problem: string) => void,
): void {
  const row = db
    .query<{ zones: Uint8Array; minAt: number; maxAt: number }, [number, number]>(
      'SELECT zones, min_at AS minAt, max_at AS maxAt FROM event_segment WHERE org = ? AND segment = ?',
    )
    .get(org, segment)
  const listed = new Map(row === null ? [] : readZones(row.zones).map((zone) => [zone.place, zone]))
  for (const { place, events, minAt, maxAt } of blocks) {
    const zone = listed.get(place)
    if (zone === undefined || row === null) report(`leaves out arrival ${seqOf(place)}`)
    else if (zone.events !== events || zone.minAt !== minAt || zone.maxAt !== maxAt)
      report(`says another length or time of the block at arrival ${seqOf(place)}`)
    else if (minAt < row.minAt || maxAt > row.maxAt) report(`leaves out the time of arrival ${seqOf(place)}`)
  }
}

/** The positions of each code, for each of the fields. */
function positionsByCode(
  db: Database,
  blocks: { place: number }[],
  first: number,
  fields: number[],
): Map<number, number[]>[] {
  const positionsByField = fields.map(() => new Map<number, number[]>())
  for (const { place } of blocks) {
    const block = readColumns(db, place)
    if (block === null) continue
    const types = block.column(member.type)
    const start = seqOf(place) - first
    for (const [fieldIndex, field] of fields.entries()) {
      const ofField = positionsByField[fieldIndex]!
      block.column(field).forEach((code, row) => {
        if (types[row] === 0) return
        const positions = ofField.get(code)
        if (positions === undefined) ofField.set(code, [start + row])
        else positions.push(start + row)
      })
    }
  }
  return positionsByField
}
