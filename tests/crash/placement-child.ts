/** Replaces a folder's database with a staged one, then exits: `bun placement-child.ts restore|undo FOLDER STAGED`. */
import { placeDatabase } from '../../db/sqlite/backup/place.ts'

const [kind, folder, staged] = process.argv.slice(2) as ['restore' | 'undo', string, string]
placeDatabase({
  folder,
  staged,
  aside: 'replaced-2',
  files: ['audit-checkpoints'],
  holder: process.pid,
  kind,
})
