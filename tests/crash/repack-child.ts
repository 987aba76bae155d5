/** Program of `repack-kill.test.ts`: opens a folder, says so, and leaves its writer to the work of the spare time. */
import { openStore } from '../../db/open.ts'
import { noon } from '../store/make.ts'

await openStore({ folder: process.argv[2]!, now: noon })
process.stdout.write('open\n')
