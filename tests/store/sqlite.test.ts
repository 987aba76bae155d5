/** The SQLite engine passes the conformance suite. */
import { openStore } from '../../db/open.ts'
import { noon } from './make.ts'
import { testStore } from './conformance.ts'
import { openTwoStores } from './sqlite-nodes.ts'

testStore('sqlite', (folder) => openStore({ folder, now: noon }), openTwoStores)
