/** A reader thread of any engine: answers from its own connections, so that no scan delays a write or a request. */
import { StoreError } from '../contract/errors.ts'
import { endThread, giveWay, serve } from './threads/port.ts'
import { readSlots, type ReadSlots } from './threads/read-slots.ts'
import { readVerbs } from './verbs.ts'
import type { ReadContext } from './contexts.ts'

/** What every engine's reader is opened with. */
export interface ReaderSettings {
  /**
   * `store`: the database was checked by the writer of its store. `command`: rejects an older schema and an unfinished
   * copy. `admin`: reads any schema that this release knows.
   */
  user: 'store' | 'command' | 'admin'
  deadlineMs: number
  /** Lowers the priority of the thread: the one for long reads. */
  givesWay: boolean
}

interface ReaderOf<O extends ReaderSettings> {
  storeError(error: unknown, verb: string): StoreError
  /** Opens a connection. The first one's caches of blocks serve the others too. */
  openContext(opening: O, first?: ReadContext): ReadContext
  /** Each connection lets one more long read wait for its next slice. */
  connectionsMax: number
  /** Operations on a whole database that need no open reader. */
  adminVerbs: { [verb: string]: (command: never) => unknown }
}

interface Reader {
  slots: ReadSlots
  context(connection: number): ReadContext
  close(): void
}

export function serveReader<O extends ReaderSettings>(engine: ReaderOf<O>): void {
  let reader: Reader | null = null
  serve(engine.storeError, (verb, command, _parts, call) => {
    if (verb === 'open') {
      reader = openReader(engine, command as O)
      return Object.keys(readVerbs)
    }
    if (verb === 'close') {
      endThread()
      reader?.slots.end(new StoreError('closed', 'the store is closed'))
      reader?.close()
      reader = null
      return null
    }
    if (verb === 'cancel') {
      reader?.slots.cancel(command as number)
      return null
    }
    const ofDatabase = engine.adminVerbs[verb] as ((command: unknown) => unknown) | undefined
    if (ofDatabase !== undefined) return ofDatabase(command)
    if (reader === null) throw new StoreError('closed', 'the store is closed')
    const run = readVerbs[verb as keyof typeof readVerbs] as
      ((context: ReadContext, query: unknown) => unknown) | undefined
    if (run === undefined) throw new StoreError('internal', `unknown verb ${verb}`)
    const { context, slots } = reader
    return slots.ask(verb, command, (connection) => run(context(connection), command), call)
  })
}

function openReader<O extends ReaderSettings>(engine: ReaderOf<O>, opening: O): Reader {
  const { connectionsMax, openContext } = engine
  const main = openContext(opening)
  if (opening.givesWay) giveWay()
  const contexts = [main]
  return {
    slots: readSlots({ deadlineMs: opening.deadlineMs, connectionsMax }),
    context: (connection) => (contexts[connection] ??= openContext(opening, main)),
    close: () => contexts.forEach(({ db }) => db.close()), // connections that were never opened are holes
  }
}
