/** Checks the event tables against each other: blocks, terms, ids, segment indexes, rollups. */
import type { Database } from 'bun:sqlite'
import type { EventFault, EventVerdict } from '../../store.ts'
import { termTexts } from './term-texts.ts'
import type { Report, VerifiedOrg } from './verified-org.ts'
import { verifyBlocks } from './verify-blocks.ts'
import { verifyIds } from './verify-ids.ts'
import { verifyRollups } from './verify-rollups.ts'
import { verifySegments } from './verify-segments.ts'
import { readSeed } from './seed.ts'
import { fingerprints } from './fingerprint.ts'
import { extra } from './block.ts'

/** Faults listed of one organization; the first ones name the damage, and thousands would hide it. */
const faultsMax = 100
const fileFaultsMax = 20

/** Each organization is checked in one read transaction; a running writer goes on meanwhile. */
export function verifyEvents(db: Database, fingerprintBits: number): EventVerdict {
  const verdict: EventVerdict = { orgs: [], faults: [] }
  const print = fingerprints(readSeed(db).ids, fingerprintBits)
  const orgs = db.query<{ num: number; orgId: string }, []>(
    'SELECT num, org_id AS orgId FROM event_org ORDER BY org_id',
  )
  for (const { num, orgId } of orgs.all()) {
    const faults: EventFault[] = []
    const report: Report = (place, problem) => {
      if (faults.length < faultsMax) faults.push({ orgId, place, problem })
    }
    db.query('BEGIN').run()
    try {
      const org = readOrg(db, num)
      const { events, whole, rollups } = verifyBlocks(db, org, report)
      verdict.orgs.push({ orgId, events })
      verifyRollups(db, org, rollups, report)
      if (whole) {
        verifyIds(db, org, print, report)
        verifySegments(db, org, report)
      }
    } catch (error) {
      // Damage that SQLite itself stumbles over: what it says is all that is known of the place.
      report('the event tables', `cannot be read: ${error instanceof Error ? error.message : String(error)}`)
    } finally {
      if (db.inTransaction) db.query('COMMIT').run()
    }
    verdict.faults.push(...faults)
  }
  verdict.faults.push(...fileFaults(db))
  return verdict
}

/** What holds the tables together: pages that are lost, used twice or out of order, whatever they belong to. */
function fileFaults(db: Database): EventFault[] {
  try {
    return db
      .query<{ quick_check: string }, []>(`PRAGMA quick_check(${fileFaultsMax})`)
      .all()
      .filter(({ quick_check }) => quick_check !== 'ok')
      .map(({ quick_check }) => ({ orgId: null, place: 'the database file', problem: quick_check }))
  } catch (error) {
    const problem = `cannot be checked: ${error instanceof Error ? error.message : String(error)}`
    return [{ orgId: null, place: 'the database file', problem }]
  }
}

function readOrg(db: Database, num: number): VerifiedOrg {
  const row = db
    .query<{ foldedSeq: number; segments: number }, [number]>(
      'SELECT folded_seq AS foldedSeq, segments FROM event_org WHERE num = ?',
    )
    .get(num)
  const codes = Array.from({ length: extra.key + 1 }, (_, index) => new Set(termTexts(db, num, index).keys()))
  return { num, foldedSeq: row?.foldedSeq ?? 0, segments: row?.segments ?? 0, codes }
}
