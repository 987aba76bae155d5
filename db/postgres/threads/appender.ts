/** The append thread of a node: stores groups of batches, at most as many at a time as the calling thread sends. */
import { StoreError } from '../../contract/errors.ts'
import { observe } from '../../rules/histogram.ts'
import { commitTimes } from '../../sql/database.ts'
import { giveWay, serve } from '../../sql/threads/port.ts'
import { failureOf, unpackBatches, type AppendOutcome } from '../../sql/threads/protocol.ts'
import { openAppendClient, openAppends, type Appends } from '../append/append.ts'
import { storeError } from '../connection/failure.ts'
import type { Sql } from 'postgres'
import type { ConnectionOptions } from '../connection/options.ts'
import type { EventBatch } from '../../contract/store.ts'

/** After the server's own timeouts: only a server that is unreachable stays silent for so long. */
const silenceMs = 5_000

/** Long enough for the other group, which then fails like this one. */
const graceSeconds = 5

const isUnavailable = (outcome: AppendOutcome): boolean => 'kind' in outcome && outcome.kind === 'unavailable'

interface Link {
  sql: Sql
  appends: Promise<Appends>
}

let options: ConnectionOptions | null = null
let link: Link | null = null

serve(storeError, (verb, command, parts) => {
  if (verb === 'open') {
    giveWay()
    options = command as ConnectionOptions
    return linked().appends.then(() => [])
  }
  if (verb === 'close') {
    options = null
    const ending = link?.sql.end({ timeout: 1 }) ?? Promise.resolve()
    // Ends this thread only, after the response was sent.
    return ending.then(() => void setTimeout(() => process.exit(0)))
  }
  if (verb === 'times') return commitTimes
  if (verb !== 'append') throw new StoreError('internal', `unknown verb ${verb}`)
  return append(unpackBatches(command, parts))
})

function linked(): Link {
  if (options === null) throw new StoreError('closed', 'the store is closed')
  if (link !== null) return link
  const sql = openAppendClient(options)
  const opened: Link = { sql, appends: openAppends(sql) }
  link = opened
  opened.appends.catch(() => drop(opened)) // the next append connects again
  return opened
}

/** The next append connects again, with a driver of its own: one whose connection closed may never send again. */
function drop(lost: Link, graceSeconds = 0): void {
  if (link === lost) link = null
  void lost.sql.end({ timeout: graceSeconds }).catch(() => undefined)
}

async function append(batches: EventBatch[]): Promise<AppendOutcome[]> {
  const used = linked()
  const silent = Promise.withResolvers<AppendOutcome[]>()
  const timer = setTimeout(() => {
    const failure = failureOf(new StoreError('unavailable', 'append: the server does not answer'))
    silent.resolve(batches.map(() => failure))
    drop(used)
  }, options!.statementTimeoutMs + silenceMs)
  const startedMs = performance.now()
  try {
    const appending = used.appends.then((appends) => appends.append(batches))
    const outcomes = await Promise.race([appending, silent.promise])
    // Another group may still be on its way.
    if (outcomes.some(isUnavailable) && link === used) drop(used, graceSeconds)
    observe(commitTimes, performance.now() - startedMs)
    return outcomes
  } finally {
    clearTimeout(timer)
  }
}
