/** Settles an interrupted placement, then exits: `bun settle-child.ts FOLDER`. */
import { settlePlacement } from '../../db/sqlite/backup/place.ts'

settlePlacement({ folder: process.argv[2]!, holder: process.pid })
