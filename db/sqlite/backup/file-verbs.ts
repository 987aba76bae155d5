/** The verbs that a reader thread runs on database files without an open store. */
import { checkup } from './checkup.ts'
import { copyDatabase, folderFacts, inspectDatabase, readSchema } from './inspect.ts'
import { placeDatabase, requireFreeFolder, settlePlacement } from './place.ts'

export const fileVerbs = {
  'file.checkup': checkup,
  'file.copy': copyDatabase,
  'file.facts': folderFacts,
  'file.inspect': inspectDatabase,
  'file.schema': readSchema,
  'file.place': placeDatabase,
  'file.requireFree': requireFreeFolder,
  'file.settle': settlePlacement,
} satisfies { [verb: string]: (command: never) => unknown }

export type FileVerbs = typeof fileVerbs
