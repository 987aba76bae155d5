/** Opens the store in a data folder, or in a database that several nodes share. The only file that picks an engine. */
import { openPostgresReader, openPostgresStore } from './postgres/store.ts'
import { serverOptions } from './postgres/connection/options.ts'
import { openServerAdmin } from './postgres/admin.ts'
import { folderFiles, openFolderAdmin } from './sqlite/admin.ts'
import { openPort, type Port } from './sql/threads/port.ts'
import { openSqliteReader, openSqliteStore } from './sqlite/threads/threads.ts'
import type { AuditEntry, Org, Store } from './contract/store.ts'
import type { SqlStore } from './sql/store/store.ts'
import type { CopyOpening } from './copy/thread.ts'
import type { CopyRequest, CopyStep, DatabaseCopy } from './contract/copy.ts'
import type { DatabaseAdmin, DatabaseFiles, SharedDatabase } from './contract/admin.ts'

interface OpenOptions {
  folder: string // created with mode 0700 when it is missing
  now: number
  /** Null: the database is a file of the folder. */
  shared?: SharedDatabase | null
  /** When false, data of an older schema is rejected with `older_schema` and stays unchanged. Default: true. */
  mayMigrate?: boolean
  /** When true, evidence of lost data is set aside instead of rejected (`missing-data.ts`). Default: false. */
  acceptLoss?: boolean
  /** Created, with its audit entry, when the store has no organization. */
  bootstrap?: { org: Org; audit: AuditEntry }
  readers?: number
  readDeadlineMs?: number
}

const readersDefault = 2
const readDeadlineMsDefault = 10_000

/** Rejects with a `StoreError`: `locked`, `read_only`, `storage_full`, `corrupt` or `newer_schema`. */
export async function openStore(options: OpenOptions): Promise<Store> {
  // Every file this process creates is readable by its owner only, also those that the engine creates later.
  process.umask(0o077)
  const { bootstrap } = options
  const store = await openEngine(options)
  if (bootstrap === undefined) return store
  try {
    await store.call('orgs.bootstrap', bootstrap)
    return store
  } catch (error) {
    await store.close()
    throw error
  }
}

function openEngine(options: OpenOptions): Promise<SqlStore> {
  const { folder, now, shared = null, acceptLoss = false, mayMigrate = true } = options
  const { readers = readersDefault, readDeadlineMs = readDeadlineMsDefault } = options
  return shared === null
    ? openSqliteStore({ folder, now, acceptLoss, mayMigrate, readers, readDeadlineMs })
    : openPostgresStore({ ...shared, now, mayMigrate, readers, readDeadlineMs })
}

/**
 * Opens a store for reading, also beside a running server and on a read-only file system. Rejects an older or unknown
 * schema, and an unfinished copy.
 */
export async function openReadStore(folder: string, shared: SharedDatabase | null = null): Promise<Store> {
  return shared === null
    ? openSqliteReader(folder, readDeadlineMsDefault)
    : openPostgresReader(shared, readDeadlineMsDefault)
}

/** Where a node connects to its shared database over the network; a socket has no address. */
export function databaseServers({ url, node }: SharedDatabase): { host: string; port: number }[] {
  return serverOptions({ url, node, statementTimeoutMs: readDeadlineMsDefault })
    .servers.filter(({ host }) => !host.startsWith('/'))
    .map(({ host, port, address = host }) => ({ host: address, port }))
}

/** Whether a location is the URL of a shared database; otherwise it is a data folder. */
function isDatabaseUrl(location: string): boolean {
  return /^postgres(?:ql)?:\/\//.test(location)
}

/** Whole-database operations on a location. Nothing is opened, created or changed until one is called. */
export function openDatabaseAdmin(location: string): DatabaseAdmin {
  if (!isDatabaseUrl(location)) {
    const migrate = async (now: number) => (await openStore({ folder: location, now })).close()
    return { ...openFolderAdmin(location), migrate }
  }
  const migrate = async (now: number) => {
    await (await openStore({ folder: '', now, shared: { url: location, node: 'admin' } })).close()
  }
  return { ...openServerAdmin(location), migrate }
}

function openCopyThread(): { ask: Port['ask']; close(): Promise<void> } {
  process.umask(0o077)
  // In the executable every module claims to be at the root, and workers keep their path below it.
  const path = Bun.isStandaloneExecutable ? './db/copy/thread.js' : './copy/thread.ts'
  const { ask, ended } = openPort('copy', new URL(path, import.meta.url).href)
  const close = async () => {
    await Promise.allSettled([ask('close', null)])
    await ended
  }
  return { ask, close }
}

/**
 * Opens both ends of a copy and checks them. Rejects with `conflict` when one of them has other data, and with `locked`
 * while a process uses the target. Nothing of the source changes before it is frozen.
 */
export async function openCopy(request: CopyRequest): Promise<DatabaseCopy> {
  const { ask, close } = openCopyThread()
  const { from, to } = request
  const fromShared = isDatabaseUrl(from.location)
  const toShared = isDatabaseUrl(to.location)
  try {
    const opened = await ask('open', { request, fromShared, toShared } satisfies CopyOpening)
    const step = () => ask('step', null) as Promise<CopyStep>
    return { ...(opened as Omit<DatabaseCopy, 'step' | 'close'>), step, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Makes a database that was copied elsewhere servable again. Returns whether it was marked as copied. */
export async function reopenCopied(location: string): Promise<boolean> {
  const { ask, close } = openCopyThread()
  try {
    return (await ask('reopen', { location, isShared: isDatabaseUrl(location) })) as boolean
  } finally {
    await close()
  }
}

/** Database files outside of a data folder, for example in a backup. */
export const databaseFiles: DatabaseFiles = folderFiles
