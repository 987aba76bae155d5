/** The writer thread: the only one that changes the database, one message at a time, appends in groups. */
import { rmSync } from 'node:fs'
import { StoreError } from '../../contract/errors.ts'
import { closeWriterConnection, openWriterConnection, releasePages } from '../file/connection.ts'
import { failureLatch, storeError, type FailureLatch } from '../file/failure.ts'
import { databasePath, makeFolder, settingAsidePath, watchFolder } from '../file/files.ts'
import { endThread, giveWay, serve } from '../../sql/threads/port.ts'
import { requireServable } from '../../sql/copy/state.ts'
import { headsKeeper } from '../../sql/audit/heads.ts'
import { lockFolder, type FolderLock } from '../file/lock.ts'
import { migrate, migrations, requireKnownSchema } from '../migrations/migrations.ts'
import { missingEntries, missingFiles, refuseMissing, setAside, type Missing } from '../file/missing-data.ts'
import { compactEventWriter } from '../../sql/events/writer.ts'
import { groupEventsMax } from '../../sql/threads/append-queue.ts'
import {
  failureOf,
  packOutcomes,
  unpackBatches,
  type AppendOutcome,
  type BriefOutcome,
} from '../../sql/threads/protocol.ts'
import {
  dropReserve,
  dropReserveWhenFull,
  makeReserveWhenRoom,
  regainReserve,
  withReserve,
} from '../file/reserve.ts'
import { limitWal, type WalLimit } from '../file/wal.ts'
import { commitTimes, inTransaction, ormOn } from '../../sql/database.ts'
import { writeVerbs } from '../../sql/verbs.ts'
import { addIngestCounts, requestCounts } from '../../sql/ingest-counts/ingest-counts.ts'
import type { SqliteDatabase } from '../file/connection.ts'
import type { EventBatch } from '../../contract/store.ts'
import type { MaintenanceReason } from '../../contract/operations.ts'
import type { WriteContext } from '../../sql/contexts.ts'
import type { EventWriter } from '../../sql/events/engine.ts'

export interface WriterOpening {
  folder: string
  now: number
  mayMigrate: boolean
  acceptLoss: boolean
}

interface Writer {
  write(verb: string, command: unknown): unknown
  /** Stores them with all other appends that have arrived. */
  append(batches: EventBatch[]): Promise<BriefOutcome[]>
  commitGathered(): void
  maintain(reason: MaintenanceReason): boolean
  requirePresent(): void
  close(): void
}

let writer: Writer | null = null

serve(storeError, (verb, command, parts) => {
  if (verb === 'open') {
    giveWay()
    writer = openWriter(command as WriterOpening)
    return Object.keys(writeVerbs)
  }
  if (verb !== 'append') writer?.commitGathered() // messages are handled in order
  if (verb === 'close') {
    endThread() // whoever closed the store waits for it
    const closing = writer
    writer = null
    closing?.close()
    return null
  }
  if (verb === 'times') return commitTimes
  if (writer === null) throw new StoreError('closed', 'the store is closed')
  if (verb === 'present') return void writer.requirePresent()
  if (verb === 'maintain') return writer.maintain(command as MaintenanceReason)
  return verb === 'append' ? writer.append(unpackBatches(command, parts)) : writer.write(verb, command)
})

/** Opens in an order in which a rejection leaves the folder unchanged: lock, inspection, database, migrations. */
function openWriter({ folder, now, mayMigrate, acceptLoss }: WriterOpening): Writer {
  makeFolder(folder)
  const lock = lockFolder(folder, process.pid)
  let db: SqliteDatabase | null = null
  const require = (missing: Missing) => {
    if (missing === null) return
    if (!acceptLoss) refuseMissing(missing)
    setAside(folder, missing, now)
  }
  try {
    dropReserveWhenFull(folder)
    require(missingFiles(folder, lock))
    rmSync(settingAsidePath(folder), { recursive: true, force: true })
    db = openWriterConnection(
      databasePath(folder),
      (database) => {
        requireKnownSchema(database, migrations, mayMigrate)
        requireServable(database, 'write')
        require(missingEntries(database, folder))
      },
      0,
    )
    lock.markLog(true)
    migrate(db, migrations, now)
    makeReserveWhenRoom(folder)
    return writerOn(db, folder, lock)
  } catch (error) {
    const opened = db
    if (opened !== null)
      quietly(() => closeWriterConnection(opened, databasePath(folder), () => lock.markLog(false)))
    lock.release()
    throw storeError(error, 'the database cannot be opened')
  }
}

function workOf(verb: string): (context: WriteContext, command: unknown) => unknown {
  const run = writeVerbs[verb as keyof typeof writeVerbs] as ReturnType<typeof workOf> | undefined
  if (run === undefined) throw new StoreError('internal', `unknown verb ${verb}`)
  return run
}

/** For background work. */
function quietly(work: () => void): void {
  try {
    work()
  } catch {
    // The next write reports a lasting fault, and a later attempt may find space on the disk.
  }
}

/** Call before an acknowledgement. A log without a name is first copied into the database, which may remain. */
function orSaveLog(wal: WalLimit, check: () => void): void {
  try {
    check()
  } catch (error) {
    wal.saveLog()
    throw error
  }
}

/** Whether the disk was full, and the reserve that deleting needs then. */
interface DiskSpace {
  isTight(): boolean
  release(): void
  regain(): void
}

function diskSpace(folder: string): DiskSpace {
  let tight = false
  return {
    isTight: () => tight,
    release(): void {
      dropReserve(folder)
      tight = true
    },
    regain(): void {
      if (makeReserveWhenRoom(folder)) tight = false
      regainReserve(folder)
    },
  }
}

function contextOf(db: SqliteDatabase, guard: FailureLatch, space: DiskSpace): WriteContext {
  return {
    db,
    orm: ormOn(db),
    isOnlyWriter: true,
    schema: migrations.length,
    get tight() {
      return space.isTight()
    },
    release: () => releasePages(db),
    get events() {
      return guard.engine()
    },
  }
}

function writerOn(db: SqliteDatabase, folder: string, lock: FolderLock): Writer {
  const guard = failureLatch(compactEventWriter(db))
  const space = diskSpace(folder)
  const context = contextOf(db, guard, space)
  const watch = watchFolder(folder)
  const heads = headsKeeper(db, folder)
  const wal = limitWal(db, {
    idle: () => quietly(() => guard.run('maintenance', () => guard.engine().idle())),
    minute: () =>
      quietly(() => {
        guard.run('the reserve', () => requirePresent(watch.requireAll))
        space.regain()
      }),
    copy: (work) => quietly(() => guard.run('checkpoint', work)),
  })

  const spare = useSpareTime(guard, wal)

  const requirePresent = (check: () => void) => orSaveLog(wal, check)

  const group = gather((batches) => {
    wal.busy()
    return guard.run('append', () => {
      const outcomes = commitGroup(db, guard.engine(), batches)
      for (const { events } of batches) spare.noteEvents(events.length)
      requirePresent(watch.requireDatabase)
      wal.copyGrown()
      return outcomes
    })
  })

  return {
    write(verb, command) {
      const run = workOf(verb)
      wal.busy()
      return withReserve(folder, verb, () =>
        guard.run(verb, () => {
          const result = inTransaction(db, () => run(context, command))
          guard.committed()
          requirePresent(watch.requireDatabase)
          heads.follow()
          wal.copyGrown()
          return result
        }),
      )
    },
    append: group.add,
    commitGathered: group.commit,
    maintain(reason) {
      const emptied = wal.truncate()
      if (reason === 'full') space.release()
      return emptied
    },
    requirePresent: () => guard.run('the data folder', () => requirePresent(watch.requireAll)),
    close() {
      spare.end()
      try {
        guard.engine().close()
        wal.end()
        quietly(() => requirePresent(watch.requireAll))
        closeWriterConnection(db, databasePath(folder), () => lock.markLog(false))
      } finally {
        watch.end()
        lock.release()
      }
    },
  }
}

const pauseMs = 100
/** A look costs 0.3 ms, and finds nothing while no events come: each pause is then twice as long as the one before. */
const idlePauseMs = 1_600
const failureMs = 5_000
/** Work of 6 ms, and then twice as long for messages. */
const restTimes = 2
/** With more events there is no spare time. A request that waits for a step, waits for it once in several. */
const busyEventsPerMs = 20

/** Does the engine's work that nobody waits for, in steps between messages. */
function useSpareTime(guard: FailureLatch, wal: WalLimit): { noteEvents(events: number): void; end(): void } {
  let events = 0
  let timer: Timer | null = null
  let waits = 0 // ms

  function step(waitedMs: number): number {
    const isBusy = events > waitedMs * busyEventsPerMs
    const isIdle = events === 0
    events = 0
    if (isBusy) return pauseMs
    const startedMs = performance.now()
    const work = () => {
      const isDue = guard.engine().spare()
      if (isDue) wal.copyGrown()
      return isDue
    }
    try {
      if (guard.run('maintenance', work)) return (performance.now() - startedMs) * restTimes
      return isIdle ? Math.max(pauseMs, Math.min(waitedMs * 2, idlePauseMs)) : pauseMs
    } catch {
      return failureMs // a full disk, or damage that `verify` reports
    }
  }

  function scheduleStep(ms: number): void {
    waits = ms
    timer = setTimeout(() => scheduleStep(step(ms)), ms)
  }

  scheduleStep(pauseMs)
  return {
    noteEvents(eventCount) {
      events += eventCount
      if (waits <= pauseMs || waits > idlePauseMs || timer === null) return
      clearTimeout(timer)
      scheduleStep(pauseMs)
    },
    end: () => void (timer !== null && clearTimeout(timer)),
  }
}

interface Gathered {
  batches: EventBatch[]
  resolve(outcomes: BriefOutcome[]): void
  reject(error: unknown): void
}

/**
 * Gathers the appends whose messages have arrived into one group. Those that arrive while a group is committed wait for
 * nothing but the disk, and no thread but this one has to notice that it is free again.
 */
function gather(commit: (batches: EventBatch[]) => AppendOutcome[]) {
  let gathered: Gathered[] = []
  let events = 0

  function commitAll(): void {
    const group = gathered
    gathered = []
    events = 0
    if (group.length === 0) return
    try {
      const outcomes = commit(group.flatMap(({ batches }) => batches))
      let next = 0
      for (const { batches, resolve } of group)
        resolve(packOutcomes(outcomes.slice(next, (next += batches.length))))
    } catch (error) {
      for (const { reject } of group) reject(error)
    }
  }

  return {
    commit: commitAll,
    add(batches: EventBatch[]): Promise<BriefOutcome[]> {
      return new Promise((resolve, reject) => {
        if (gathered.length === 0) setImmediate(commitAll) // after the messages that have arrived
        gathered.push({ batches, resolve, reject })
        for (const batch of batches) events += batch.events.length
        if (events >= groupEventsMax) commitAll()
      })
    },
  }
}

/** One group of waiting batches in one transaction: one fsync for all of them, each failing alone. */
function commitGroup(db: SqliteDatabase, events: EventWriter, batches: EventBatch[]): AppendOutcome[] {
  const outcomes = inTransaction(db, () => {
    const results = batches.map((batch) => appendOne(db, events, batch))
    events.flush()
    // In the same transaction, so that after a crash the counts of ingest match the events.
    const added = requestCounts(batches, results)
    if (added.counts.length > 0) addIngestCounts({ db }, added)
    return results
  })
  events.committed()
  return outcomes
}

/** A failure of the whole transaction (a full disk, a failed device) fails every batch. */
function appendOne(db: SqliteDatabase, events: EventWriter, batch: EventBatch): AppendOutcome {
  try {
    return events.append(batch)
  } catch (error) {
    const failure = storeError(error, 'append')
    if (!db.inTransaction || failure.kind === 'io' || failure.kind === 'storage_full') throw failure
    return failureOf(failure)
  }
}
