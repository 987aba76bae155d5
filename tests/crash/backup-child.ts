/** Runs a backup, a restore or an undo, then exits: `bun backup-child.ts backup|restore|undo …`. */
import { createBackup } from '../../server/operations/backup/create.ts'
import { restoreBackup, undoRestore } from '../../server/operations/backup/restore.ts'

const clock = { now: () => Date.now() }
const [verb, dataDir, path] = process.argv.slice(2) as [string, string, string]
if (verb === 'backup') {
  await createBackup({ dataDir, dir: path, reason: 'scheduled', passphrase: null, clock })
} else if (verb === 'restore') {
  const restoreOptions = { passphrase: null, keyFile: null, overwrite: true, allowPlain: false, clock }
  await restoreBackup({ dataDir, path, ...restoreOptions })
} else await undoRestore(dataDir, clock)
process.exit(0)
