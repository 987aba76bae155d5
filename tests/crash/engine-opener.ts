/** Program of `migration-round.ts`: opens a folder, which migrates it, and closes it. */
import { openStore } from '../../db/open.ts'
import { noon } from '../store/make.ts'

const [folder = ''] = Bun.argv.slice(2)
const store = await openStore({ folder, now: noon })
await Bun.sleep(1_500) // the writer does the rest of the upgrade when idle
await store.close()
