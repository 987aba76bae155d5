/** Finds one event by its id: through the id runs, and past the last run by looking into the blocks. */
import type { Database } from 'bun:sqlite'
import type { StoredEvent } from '../../../contract/store.ts'
import { zonesBetween, type Zone } from '../blocks/block-table.ts'
import { runLookup, spansOf } from '../dedupe/id-run.ts'
import { namesThatMayHold } from '../cache/ids.ts'
import { holdsId, openIds } from '../blocks/names.ts'
import { readBlock } from '../blocks/open-block.ts'
import { seqMax, seqOf } from '../blocks/row-key.ts'

export function findById(
  db: Database,
  org: number,
  fingerprint: (org: number, id: string) => number,
  id: string,
): StoredEvent | null {
  const text = JSON.stringify(id)
  const print = fingerprint(org, text)
  const lookup = runLookup(db)
  const spans = spansOf(db, org)
  let found: StoredEvent | null = null
  for (const { run, firstSeq } of spans) {
    lookup(run, firstSeq, print, (seq) => {
      found = eventWith(db, zonesBetween(db, org, seq, seq + 1), text)
      return found !== null
    })
    if (found !== null) return found
  }
  const flushedSeq = spans.reduce((high, { lastSeq }) => Math.max(high, lastSeq), 0)
  return eventWith(db, zonesBetween(db, org, flushedSeq + 1, seqMax).reverse(), text)
}

function eventWith(db: Database, zones: Zone[], id: string): StoredEvent | null {
  for (const zone of zones) {
    const names = namesThatMayHold(db, zone, id)
    if (names === null || !holdsId(names, zone.events, id)) continue
    return readBlock(db, zone)?.event(openIds(names, zone.events).indexOf(id)) ?? null
  }
  return null
}
