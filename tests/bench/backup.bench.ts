/** Bench of backups: `bun tests/bench/backup.bench.ts [--full | --events N] [--write]`, see --help. */
import { statSync } from 'node:fs'
import type { Store } from '../../db/contract/store.ts'
import { openDataFolder } from '../../server/runtime/open-data-folder.ts'
import { createBackup } from '../../server/operations/backup/create.ts'
import { restoreBackup } from '../../server/operations/backup/restore.ts'
import { systemClock as clock } from '../../server/clock.ts'
import { openSecretBox } from '../../server/system/encryption.ts'
import { tempDir } from '../support/temp-dir.ts'
import { eventSource, type EventSource } from './engine-events.ts'
import { recordTable, table } from './report.ts'

const help = `Fills a store with events, goes on committing batches of 100 by four senders, and makes a backup:
how long do commits wait, before it and during it? Then restores it elsewhere and opens that.

  --events N   as many as you say; 200,000 unless given
  --full       10,000,000 events: many minutes, and 4 GB of disk
  --write      replaces the section in tests/bench/results.md`

const fillBatch = 1_000
const fillersAtOnce = 4
const liveBatch = 100
const senders = 4
const pauseMs = 10 // between two posts of a sender, so that the disk has capacity for the backup
const quietMs = 2_000

export interface BackupMeasured {
  events: number
  databaseMiB: number
  backupMs: number
  before: Waits
  during: Waits
  restoreMs: number
  readyMs: number // opening the restored data
  restoredEvents: number
}

interface Waits {
  commits: number
  p50Ms: number
  p99Ms: number
  maxMs: number
}

export async function backupBench(events: number): Promise<BackupMeasured> {
  using dir = tempDir('backup-bench')
  const dataDir = dir.join('data')
  const source = eventSource(events)
  let store = await openDataFolder(dataDir, clock)
  openSecretBox(dataDir)
  const orgId = (await store.orgs.find('default'))!.id
  await fill(store, orgId, source, events)
  const load = startLoad(store, orgId, source, events)
  await Bun.sleep(quietMs)
  const waitsBefore = load.take()
  const startedMs = performance.now()
  const backupOptions = {
    dataDir,
    dir: dir.join('backups'),
    reason: 'manual',
    passphrase: null,
    clock,
  } as const
  const backup = await createBackup(backupOptions)
  const backupMs = performance.now() - startedMs
  const waitsDuring = load.take()
  await load.stop()
  await store.close()
  const databaseMiB = statSync(`${dataDir}/sightglass.db`).size / 2 ** 20
  const to = { dataDir: dir.join('restored'), path: backup.path, passphrase: null, keyFile: null, clock }
  const restoringMs = performance.now()
  const { events: restoredEvents } = await restoreBackup({ ...to, overwrite: false, allowPlain: false })
  const openingMs = performance.now()
  store = await openDataFolder(to.dataDir, clock)
  const readyMs = performance.now() - openingMs
  await store.close()
  const restoreMs = openingMs - restoringMs
  return {
    events,
    databaseMiB,
    backupMs,
    before: waitsBefore,
    during: waitsDuring,
    restoreMs,
    readyMs,
    restoredEvents,
  }
}

function batchOf(source: EventSource, from: number, events: number) {
  return Array.from({ length: events }, (_, index) => source.event(from + index))
}

async function fill(store: Store, orgId: string, source: EventSource, total: number): Promise<void> {
  let next = 0
  const fillOn = async () => {
    while (next < total) {
      const from = next
      next += fillBatch
      const events = batchOf(source, from, Math.min(fillBatch, total - from))
      await store.events.append({
        orgId,
        keyId: 'key_bench',
        door: 'events',
        receivedAtMs: clock.now(),
        events,
      })
    }
  }
  await Promise.all(Array.from({ length: fillersAtOnce }, fillOn))
}

/** Senders that record how long each commit took. `take` returns the waits since the last call. */
function startLoad(store: Store, orgId: string, source: EventSource, first: number) {
  let waits: number[] = []
  let next = first
  let going = true
  const send = async () => {
    while (going) {
      const events = batchOf(source, (next += liveBatch), liveBatch)
      const startedMs = performance.now()
      await store.events.append({
        orgId,
        keyId: 'key_bench',
        door: 'events',
        receivedAtMs: clock.now(),
        events,
      })
      waits.push(performance.now() - startedMs)
      await Bun.sleep(pauseMs)
    }
  }
  const sends = Array.from({ length: senders }, send)
  return {
    take(): Waits {
      const sorted = waits.toSorted((a, b) => a - b)
      waits = []
      const quantileAt = (part: number) =>
        sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0
      return {
        commits: sorted.length,
        p50Ms: quantileAt(0.5),
        p99Ms: quantileAt(0.99),
        maxMs: sorted.at(-1) ?? 0,
      }
    },
    async stop() {
      going = false
      await Promise.all(sends)
    },
  }
}

export function backupTable(measured: BackupMeasured): string {
  const {
    events,
    databaseMiB,
    backupMs,
    before: waitsBefore,
    during: waitsDuring,
    restoreMs,
    readyMs,
  } = measured
  const ms = (value: number) => Number(value.toFixed(0))
  const row = (name: string, waits: Waits) => [
    name,
    waits.commits,
    ms(waits.p50Ms),
    ms(waits.p99Ms),
    ms(waits.maxMs),
  ]
  const seconds = (value: number) => (value / 1_000).toFixed(1)
  return [
    `${events.toLocaleString('en-US')} events, ${databaseMiB.toFixed(0)} MiB: backup made and proven in ` +
      `${seconds(backupMs)} s, restored in ${seconds(restoreMs)} s, opened in ${seconds(readyMs)} s`,
    '',
    table(
      ['commits of 100 events', 'commits', 'p50 ms', 'p99 ms', 'most ms'],
      [row('before the backup', waitsBefore), row('during the backup', waitsDuring)],
    ),
  ].join('\n')
}

if (import.meta.main) {
  const args = process.argv.slice(2)
  const optionIndex = args.indexOf('--events')
  if (args.includes('--help')) console.log(help)
  else {
    const events =
      optionIndex >= 0 ? Number(args[optionIndex + 1]) : args.includes('--full') ? 10_000_000 : 200_000
    const text = backupTable(await backupBench(events))
    console.log(text)
    if (args.includes('--write')) recordTable('Backup', text)
  }
}
