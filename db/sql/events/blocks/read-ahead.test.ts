/** Reading ahead asks in few statements, answers the same, and leaves nothing behind. */
import { expect, test } from 'bun:test'
import { makeBatch, makeEvent, noon } from '../../../../tests/store/make.ts'
import { readAtOnce } from '../../../../tests/support/read-at-once.ts'
import { spreadBlocks } from '../../../../tests/support/spread-blocks.ts'
import { openDatabase } from '../../../sqlite/file/connection.ts'
import { migrate, migrations } from '../../../sqlite/migrations/migrations.ts'
import type { EventFilter } from '../../../contract/event-fields.ts'
import { inTransaction, type Database, type Statement } from '../../database.ts'
import { idsInRuns } from '../ids-in-runs.ts'
import { compactEventReader } from '../reader.ts'
import { compactEventWriter } from '../writer.ts'
import { columnsRead, textsRead } from './read-ahead.ts'

const blocks = 40
const org = 1

function filled(): Database {
  const db = openDatabase(':memory:')
  migrate(db, migrations, noon)
  const writer = compactEventWriter(db)
  const events = Array.from({ length: blocks * 256 }, (_, n) => {
    return makeEvent(`e${n}`, { sessionId: `s${n % 100}`, outcome: n % 256 === 0 ? 'rare' : 'success' })
  })
  inTransaction(db, () => {
    writer.append(makeBatch('org_a', events))
    writer.flush()
  })
  writer.committed()
  return db
}

const aboutBlocks = /FROM event_(block|body) WHERE place( =| <=| IN)/

/** The same connection, as of an engine with round trips. Counts some statements. */
function counting(
  db: Database,
  blocksAhead: number,
  pattern = aboutBlocks,
): { db: Database; statements(): number } {
  let statements = 0
  function query(sql: string): Statement {
    const statement = db.query(sql)
    const isCounted = pattern.test(sql)
    const counted = () => {
      if (isCounted) statements++
      return statement
    }
    return {
      get: (...params) => counted().get(...params),
      all: (...params) => counted().all(...params),
      values: (...params) => counted().values(...params),
      run: (...params) => statement.run(...params),
      iterate: (...params) => statement.iterate(...params),
    }
  }
  const countedDatabase = {
    query,
    run: (sql: string) => db.run(sql),
    runEach: db.runEach,
    close: () => db.close(),
    get inTransaction() {
      return db.inTransaction
    },
    dialect: { ...db.dialect, blocksAhead },
  } as Database
  return { db: countedDatabase, statements: () => statements }
}

test('a page whose rows are in as many blocks as it has rows takes few statements', () => {
  const db = filled()
  const answer = (blocksAhead: number) => {
    const counted = counting(db, blocksAhead)
    const reader = readAtOnce(compactEventReader(counted.db, idsInRuns(counted.db)))
    const statementsBefore = counted.statements()
    const filter = { outcomes: ['rare'] }
    const page = reader.page({ orgId: 'org_a', filter, limit: 30, before: null, ceilingSeq: null })
    const statements = counted.statements() - statementsBefore
    for (let place = org * 2 ** 36; place < org * 2 ** 36 + blocks * 256; place++)
      expect([columnsRead(counted.db, place), textsRead(counted.db, place)]).toEqual([undefined, undefined])
    return { page, statements }
  }
  const one = answer(1)
  const many = answer(64)
  expect(one.page.events.length).toBe(30)
  expect(many.page).toEqual(one.page)
  expect(one.statements).toBeGreaterThan(80)
  expect(many.statements).toBeLessThan(10)
})

test('a page of a value that each segment has once takes few statements, also the first time', () => {
  const db = filled()
  const ceilingSeq = spreadBlocks(db, org)
  const answer = (blocksAhead: number, filter: EventFilter, limit = 35) => {
    const counted = counting(db, blocksAhead, /./)
    const reader = readAtOnce(compactEventReader(counted.db, idsInRuns(counted.db)))
    const read = () => {
      const statementsBefore = counted.statements()
      const page = reader.page({
        orgId: 'org_a',
        filter,
        limit,
        before: null,
        ceilingSeq,
      })
      return { page, statements: counted.statements() - statementsBefore }
    }
    return [read(), read()] as const // the second time it has cached which rows match
  }
  const [singleRun, oneAgain] = answer(1, { outcomes: ['rare'] })
  const [batchRun, manyAgain] = answer(64, { outcomes: ['rare'] })
  expect(singleRun.page.events.length).toBe(35)
  for (const { page } of [oneAgain, batchRun, manyAgain]) expect(page).toEqual(singleRun.page)
  expect(Math.min(singleRun.statements, oneAgain.statements)).toBeGreaterThan(100)
  expect(Math.max(batchRun.statements, manyAgain.statements)).toBeLessThan(30)
  // The newest segment has the page, so nothing else is read.
  const [common] = answer(64, { outcomes: ['success'] })
  expect(common.page.events.length).toBe(35)
  expect(common.statements).toBeLessThan(15)
  // The index has hashes of sessions, so each row is compared with its text.
  const ofSession = { sessionIds: ['s98'] }
  const [, alone] = answer(1, ofSession, 90)
  const [, ahead] = answer(64, ofSession, 90)
  expect([ahead.page, ahead.page.events.length]).toEqual([alone.page, 90])
  expect(alone.statements).toBeGreaterThan(100)
  expect(ahead.statements).toBeLessThan(30)
})
