/**
 * Laws of damage in SQLite's log, over random transactions, checkpoints and rollbacks: a flip that costs a transaction
 * is found, and what kills and power cuts leave is no damage.
 */
import { Database, constants } from 'bun:sqlite'
import { expect, setDefaultTimeout, test } from 'bun:test'
import fc from 'fast-check'
import { copyFileSync, existsSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { runs } from '../../../tests/support/runs.ts'
import { tempDir, type TempDir } from '../../../tests/support/temp-dir.ts'
import { findLogDamage } from './log-damage.ts'

setDefaultTimeout(60_000)

const pageBytes = 1_024
const frameBytes = 24 + pageBytes
const suffixes = ['', '-wal', '-shm']

interface Step {
  kind: 'commit' | 'rollback' | 'restart' | 'truncate'
  rows: number
}

const rows = fc.integer({ min: 1, max: 60 })
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('commit' as const), rows }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('rollback' as const), rows }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constantFrom('restart' as const, 'truncate' as const),
      rows: fc.constant(0),
    }),
  },
)
const steps = fc.array(step, { minLength: 3, maxLength: 20 })

function open(path: string): Database {
  const db = new Database(path, { create: true, readwrite: true, strict: true })
  db.fileControl(constants.SQLITE_FCNTL_PERSIST_WAL, 1)
  db.run(`PRAGMA page_size = ${pageBytes}`)
  db.run('PRAGMA journal_mode = WAL')
  db.run('PRAGMA synchronous = FULL')
  db.run('PRAGMA wal_autocheckpoint = 0')
  db.run('PRAGMA cache_size = 5') // pages: transactions spill into the log before they commit
  db.run('CREATE TABLE IF NOT EXISTS filling (n INTEGER PRIMARY KEY, bytes BLOB)')
  return db
}

function perform(db: Database, currentStep: Pick<Step, 'kind' | 'rows'>): void {
  if (currentStep.kind === 'restart') db.run('PRAGMA wal_checkpoint(RESTART)')
  else if (currentStep.kind === 'truncate') db.run('PRAGMA wal_checkpoint(TRUNCATE)')
  else {
    db.run('BEGIN')
    for (let row = 0; row < currentStep.rows; row++)
      db.run('INSERT INTO filling (bytes) VALUES (randomblob(300))')
    db.run(currentStep.kind === 'commit' ? 'COMMIT' : 'ROLLBACK')
  }
}

/** The files as kill -9 leaves them. `name` of the copy. */
function kill(from: string, dir: TempDir, name: string): string {
  const to = dir.join(name)
  for (const suffix of suffixes) {
    rmSync(to + suffix, { force: true })
    if (existsSync(from + suffix)) copyFileSync(from + suffix, to + suffix)
  }
  return to
}

/** What SQLite reads, after the check of the log. */
function rowsIn(path: string): number {
  const db = new Database(path)
  try {
    return db.query<{ n: number }, []>('SELECT count(*) AS n FROM filling').get()!.n
  } catch (error) {
    // The transaction that created the table was dropped too.
    if (String(error).includes('no such table')) return 0
    throw error
  } finally {
    db.close()
  }
}

interface Before {
  rows: number
  frames: number // of the log, which are synced
}

/** Without the damage, the rest is a state that the database once had. */
function requireWhole(path: string, soundBytes: number): void {
  truncateSync(logOf(path), soundBytes)
  rmSync(`${path}-shm`)
  using db = new Database(path)
  expect(db.query('PRAGMA integrity_check').values()).toEqual([['ok']])
}

/** Works on a live database and calls `look` after each step with a copy as kill -9 would leave it. */
function runSteps(stepList: Step[], look: (path: string, stateBefore: Before) => void): void {
  using dir = tempDir('log-damage')
  const live = dir.join('live.db')
  const db = open(live)
  try {
    let rows = 0
    for (const currentStep of stepList) {
      const stateBefore = { rows, frames: framesOf(live) }
      const header = headerOf(live)
      perform(db, currentStep)
      if (currentStep.kind === 'commit') rows += currentStep.rows
      if (!headerOf(live).equals(header)) stateBefore.frames = 0 // begun anew
      look(kill(live, dir, 'killed.db'), stateBefore)
    }
  } finally {
    db.close()
  }
}

const logOf = (path: string) => `${path}-wal`
const framesOf = (path: string) => Math.floor((readFileSync(logOf(path)).length - 32) / frameBytes)

const headerOf = (path: string) => readFileSync(logOf(path)).subarray(0, 32)

test('no log that kill -9 leaves is damaged, with and without the shared memory', () => {
  fc.assert(
    fc.property(steps, (stepList) => {
      runSteps(stepList, (path) => {
        expect(findLogDamage(path)).toBeNull()
        rmSync(`${path}-shm`)
        expect(findLogDamage(path)).toBeNull()
      })
    }),
    { numRuns: runs(60) },
  )
})

test('a flipped bit is found, or costs no transaction', () => {
  let foundCount = 0
  fc.assert(
    fc.property(steps, fc.nat(), fc.nat(7), fc.boolean(), (stepList, place, bit, inHeader) => {
      using keptDir = tempDir('log-damage')
      let path = ''
      let rows = 0
      runSteps(stepList, (copy) => void (path = kill(copy, keptDir, 'last.db')))
      const bytes = readFileSync(logOf(path))
      if (bytes.length <= 32) return
      rows = rowsIn(kill(path, keptDir, 'whole.db'))
      const offset = inHeader ? place % 32 : place % bytes.length
      bytes[offset]! ^= 1 << bit
      writeFileSync(logOf(path), bytes)
      const damage = findLogDamage(path)
      if (damage !== null) {
        foundCount++
        requireWhole(path, damage.soundBytes)
      } else expect([offset, rowsIn(path)]).toEqual([offset, rows])
    }),
    { numRuns: runs(300) },
  )
  expect(foundCount).toBeGreaterThan(0)
})

const smallCommits = fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 4, maxLength: 12 })

test('without the shared memory, a flip costs at most the last two transactions unseen', () => {
  fc.assert(
    fc.property(smallCommits, fc.nat(), fc.nat(7), (sizes, place, bit) => {
      using keptDir = tempDir('log-damage')
      let path = ''
      let rows = 0
      const stepList = sizes.map((count): Step => ({ kind: 'commit', rows: count }))
      runSteps(stepList, (copy, stateBefore) => {
        path = kill(copy, keptDir, 'last.db')
        rows = stateBefore.rows
      })
      rmSync(`${path}-shm`)
      const bytes = readFileSync(logOf(path))
      const offset = place % bytes.length
      bytes[offset]! ^= 1 << bit
      writeFileSync(logOf(path), bytes)
      if (findLogDamage(path) !== null) return
      expect(rowsIn(path)).toBeGreaterThanOrEqual(rows - (sizes.at(-2) ?? 0))
    }),
    { numRuns: runs(300) },
  )
})

test('a log that a power cut cut short, or whose last transaction it took in part, is not damaged', () => {
  fc.assert(
    fc.property(steps, fc.nat(), fc.array(fc.nat(), { maxLength: 6 }), (stepList, cut, lost) => {
      runSteps(stepList, (path, { frames: synced }) => {
        rmSync(`${path}-shm`)
        const frames = framesOf(path)
        const bytes = readFileSync(logOf(path))
        // Pages of the transaction that was not synced, in any order.
        for (const place of lost) {
          const frame = synced + (place % Math.max(1, frames - synced))
          if (frame < frames) bytes.fill(0, 32 + frame * frameBytes, 32 + (frame + 1) * frameBytes)
        }
        writeFileSync(logOf(path), bytes)
        expect(findLogDamage(path)).toBeNull()
        const end = 32 + synced * frameBytes
        if (bytes.length > end) truncateSync(logOf(path), end + (cut % (bytes.length - end)))
        expect(findLogDamage(path)).toBeNull()
      })
    }),
    { numRuns: runs(60) },
  )
})

test('what a torn transaction left behind the end of the log is no damage after the next crash', () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 2, maxLength: 6 })
  fc.assert(
    fc.property(sizes, sizes, sizes, (sizesBefore, torn, sizesAfter) => {
      using dir = tempDir('log-damage')
      let path = dir.join('begun.db')
      const database = open(path)
      for (const rows of sizesBefore) perform(database, { kind: 'commit', rows })
      for (const [crash, rows] of torn.entries()) {
        const db = crash === 0 ? database : open(path)
        const synced = framesOf(path)
        perform(db, { kind: 'commit', rows })
        const crashed = kill(path, dir, `crash-${crash}.db`)
        db.close()
        path = crashed
        rmSync(`${path}-shm`)
        const bytes = readFileSync(logOf(path))
        // The first frame of the transaction did not reach the disk, the others did.
        if (framesOf(path) > synced) bytes.fill(0, 32 + synced * frameBytes, 32 + (synced + 1) * frameBytes)
        writeFileSync(logOf(path), bytes)
        expect(findLogDamage(path)).toBeNull()
        const again = open(path)
        perform(again, { kind: 'commit', rows: sizesAfter[crash % sizesAfter.length] ?? 1 })
        const next = kill(path, dir, `next-${crash}.db`)
        again.close()
        path = next
        expect(findLogDamage(path)).toBeNull()
        rmSync(`${path}-shm`)
        expect(findLogDamage(path)).toBeNull()
      }
    }),
    { numRuns: runs(60) },
  )
})
