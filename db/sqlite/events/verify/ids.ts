/** Checks that dedupe would know every id again: each folded into a run can be found in it, filter first. */
import type { Database } from 'bun:sqlite'
import { zonesBetween } from '../blocks/block-table.ts'
import { fingerprintOf } from '../dedupe/erased-id.ts'
import { idFilter } from '../dedupe/id-filter.ts'
import { readBits } from '../dedupe/id-freeze.ts'
import { chunkOf, chunksPerRun, entriesOf, spansOf, type Span } from '../dedupe/id-run.ts'
import { openIds } from '../blocks/names.ts'
import { seqOf } from '../blocks/row-key.ts'
import { blockName } from './blocks.ts'
import type { Check, Report } from './verified-org.ts'

type Print = (org: number, id: string) => number

/** The runs that are there when it begins, from the newest back; retention may take old ones meanwhile. */
export function* verifyIds(db: Database, org: number, print: Print, report: Report): Check {
  for (let before = Infinity; ;) {
    const span = spansOf(db, org).find(({ run }) => run < before)
    if (span === undefined) return
    verifyRun(db, org, span, print, report)
    before = span.run
    yield
  }
}

function verifyRun(db: Database, org: number, span: Span, print: Print, report: Report): void {
  const { run, firstSeq, lastSeq } = span
  const read = db.query<{ ids: Uint8Array }, [number]>('SELECT ids FROM event_body WHERE place = ?')
  const filter = idFilter()
  filter.load(run, readBits(db, run))
  const entries = runEntries(db, run)
  for (const zone of zonesBetween(db, org, firstSeq, lastSeq + 1)) {
    const ids = openIds(read.get(zone.place)!.ids, zone.events)
    ids.forEach((id, row) => {
      const seq = seqOf(zone.place) + row
      const fingerprint = fingerprintOf(id, (text) => print(org, text))
      if (fingerprint === null || seq < firstSeq || seq > lastSeq) return
      const known = entries.get(fingerprint)?.includes(seq - firstSeq) && filter.some(fingerprint, () => true)
      if (!known) report(blockName(zone), `the id of arrival ${seq} is not in id run ${run}`)
    })
  }
}

/** fingerprint -> offsets of the entries of a run. */
function runEntries(db: Database, run: number): Map<number, number[]> {
  const all = new Map<number, number[]>()
  const rows = db.query<{ chunk: number; entries: Uint8Array }, [number, number]>(
    'SELECT chunk, entries FROM event_id_chunk WHERE chunk >= ? AND chunk < ?',
  )
  for (const { chunk, entries } of rows.iterate(run * chunksPerRun, (run + 1) * chunksPerRun)) {
    for (const { fingerprint, offset } of entriesOf(entries, chunk % chunksPerRun)) {
      if (chunkOf(fingerprint) !== chunk % chunksPerRun) continue
      const offsets = all.get(fingerprint)
      if (offsets === undefined) all.set(fingerprint, [offset])
      else offsets.push(offset)
    }
  }
  return all
}
