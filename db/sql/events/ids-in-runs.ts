/** Ids in id runs: how readers find them, and how runs expire with the events. */
import { cacheIds, findById } from './read/by-id.ts'
import { verifyIds } from './verify/indexes.ts'
import { chunksPerRun, runsPerGroup } from './dedupe/id-run.ts'
import { fingerprints, readSeed, type EraseMark, type StoredIds } from './dedupe/fingerprints.ts'
import type { Database } from '../database.ts'
import type { DeletedIds } from './dedupe/deleted-ids.ts'
import type { EventIds } from './engine.ts'
import type { Dedupe } from './dedupe/dedupe.ts'

/** `sharedWith` is another connection of the same thread, whose cache this one shares. */
export function idsInRuns(db: Database, fingerprintBits = 53, sharedWith = db): EventIds {
  const print = fingerprints(readSeed(db).ids, fingerprintBits)
  cacheIds(db, sharedWith)
  return {
    find: (org, id) => findById(db, org, print, id),
    verify: (org, report) => verifyIds(db, org, print, report),
  }
}

/** An id whose block is deleted is new again, because the block would confirm it. So only whole runs are deleted. */
export function deletedFromRuns(
  db: Database,
  dedupe: Dedupe,
  stored: StoredIds,
  mark: EraseMark,
): DeletedIds {
  let runs: number[] = [] // deleted by the open transaction
  return {
    mark,
    removed() {},
    expires() {},
    expired(org, firstKept) {
      dropSpans(db, org, firstKept)
      runs = dropUnusedRuns(db)
    },
    emptied(org) {
      db.query('DELETE FROM event_id_run WHERE org = ?').run(org)
      runs = dropUnusedRuns(db)
    },
    forget: stored.forget,
    committed() {
      if (runs.length > 0) dedupe.drop(runs)
      runs = []
    },
    undone() {
      runs = []
    },
  }
}

/** The newest run stays, so that its number is not used again while memory refers to it. */
function dropSpans(db: Database, org: number, firstKept: number): void {
  db.query(
    'DELETE FROM event_id_run WHERE org = ? AND last_seq < ? AND run < (SELECT max(run) FROM event_id_run)',
  ).run(org, firstKept)
}

/** Deletes the chunks and filters of runs that no organization needs, and returns the runs. */
function dropUnusedRuns(db: Database): number[] {
  const unusedRuns = db
    .query<{ run: number }, []>(
      `SELECT run FROM event_id_filter WHERE run NOT IN (SELECT run FROM event_id_run)
       AND run < (SELECT max(run) FROM event_id_filter)
       AND run - run % ${runsPerGroup} NOT IN (SELECT first_run FROM event_id_group)`,
    )
    .all()
    .map(({ run }) => run)
  for (const run of unusedRuns) dropRun(db, run)
  return [...unusedRuns, ...dropUnusedGroup(db)]
}

function dropRun(db: Database, run: number): void {
  const first = run * chunksPerRun
  db.query('DELETE FROM event_id_chunk WHERE chunk >= ? AND chunk < ?').run(first, first + chunksPerRun)
  db.query('DELETE FROM event_id_filter WHERE run = ?').run(run)
}

/** Rows of a merged group belong to all its runs. They are deleted by the number of a run, because all are 90 MB. */
function dropUnusedGroup(db: Database): number[] {
  const group = db
    .query<{ firstRun: number }, []>(
      `SELECT first_run AS firstRun FROM event_id_group WHERE NOT EXISTS
       (SELECT 1 FROM event_id_run WHERE run >= first_run AND run < first_run + ${runsPerGroup}) LIMIT 1`,
    )
    .get()
  if (group === null) return []
  const { firstRun } = group
  const runs = Array.from({ length: runsPerGroup }, (_, index) => firstRun + index)
  const hasRows = db.query<unknown, [number, number]>(
    'SELECT 1 FROM event_id_chunk WHERE chunk >= ? AND chunk < ? LIMIT 1',
  )
  const next = runs.find((run) => hasRows.get(run * chunksPerRun, (run + 1) * chunksPerRun) !== null)
  if (next !== undefined) dropRun(db, next)
  else {
    db.query('DELETE FROM event_id_filter WHERE run >= ? AND run < ?').run(firstRun, firstRun + runsPerGroup)
    db.query('DELETE FROM event_id_group WHERE first_run = ?').run(firstRun)
  }
  return runs
}
