/** The whole-database operations of a data folder. Each runs on a thread that ends with its result. */
import { existsSync, statSync } from 'node:fs'
import { databasePath, unfinishedRestorePath } from './file/files.ts'
import { lockFolder } from './file/lock.ts'
import { readAuditHeads } from '../sql/audit/heads.ts'
import { migrations } from './migrations/migrations.ts'
import { openWorker, readOnce } from './threads/threads.ts'
import type { DatabaseAdmin, DatabaseCopies, DatabaseFiles } from '../contract/admin.ts'
import type { FileVerbs } from './backup/file-verbs.ts'

const headsFile = 'audit-heads'

/** `migrate` is missing because it opens a store, which `db/open.ts` does. */
export function openFolderAdmin(folder: string): Omit<DatabaseAdmin, 'migrate'> {
  return {
    newestSchema: migrations.length,
    hasData: async () => existsSync(databasePath(folder)),
    schema: () => runFileVerb('file.schema', folder),
    async requireUnused() {
      await runFileVerb('file.requireFree', { folder, holder: process.pid })
    },
    facts: () => runFileVerb('file.facts', folder),
    checkUp: (now) => runFileVerb('file.checkup', { folder, now }),
    checkpoints: () => readOnce(folder, 'audit.checkpoints'),
    verifyAudit: (anchors = []) => readOnce(folder, 'audit.verify', anchors),
    verifyEvents: () => readOnce(folder, 'events.verify'),
    missingEvidence: async (entries = 0) => (hasHeads(folder, entries) ? [] : [headsFile]),
    lastWriteMs: async () => lastWriteMs(folder),
    copyState: () => runFileVerb('file.copyState', folder),
    backups: copiesOf(folder),
  }
}

function copiesOf(folder: string): DatabaseCopies {
  return {
    by: 'copy',
    bytes: () => sizeOf(databasePath(folder)) + sizeOf(`${databasePath(folder)}-wal`),
    copyTo: (path) => runFileVerb('file.copy', { folder, path }),
    continues: (head) => runFileVerb('file.continues', { folder, head }),
    place: (placement) => runFileVerb('file.place', { ...placement, folder, holder: process.pid }),
    async settle() {
      if (!existsSync(unfinishedRestorePath(folder))) return null
      return runFileVerb('file.settle', { folder, holder: process.pid })
    },
  }
}

export const folderFiles: DatabaseFiles = {
  pathIn: databasePath,
  inspect: (query) => runFileVerb('file.inspect', query),
  hold: (folder) => lockFolder(folder, process.pid).release,
}

function hasHeads(folder: string, entries: number): boolean {
  if (entries <= 1) return existsSync(`${folder}/${headsFile}`)
  return Object.keys(readAuditHeads(folder) ?? {}).length > 0
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

function lastWriteMs(folder: string): number | null {
  const paths = ['sightglass.db', 'sightglass.db-wal', headsFile, 'audit-checkpoints'].map(
    (name) => `${folder}/${name}`,
  )
  // A folder that is a file throws in `statSync`; opening it explains that.
  const times = paths.filter((path) => existsSync(path)).map((path) => statSync(path).mtimeMs)
  return times.length === 0 ? null : Math.max(...times)
}

async function runFileVerb<K extends keyof FileVerbs>(
  verb: K,
  command: Parameters<FileVerbs[K]>[0],
): Promise<ReturnType<FileVerbs[K]>> {
  const reader = openWorker('reader')
  try {
    return (await reader.ask(verb, command)) as ReturnType<FileVerbs[K]>
  } finally {
    await Promise.allSettled([reader.ask('close', null)])
    await reader.ended
  }
}
