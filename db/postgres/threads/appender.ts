/** The append thread of a node: stores groups of batches, as many at a time as the calling thread sends. */
import { StoreError } from '../../contract/errors.ts'
import { observe } from '../../rules/histogram.ts'
import { commitTimes } from '../../sql/database.ts'
import { endThread, giveWay, serve } from '../../sql/threads/port.ts'
import { unpackBatches } from '../../sql/threads/protocol.ts'
import { openAppends, type AppendAnswer, type Appends } from '../append/append.ts'
import { openAppendClient, type AppendClient } from '../append/client.ts'
import { storeError } from '../connection/failure.ts'
import type { ConnectionOptions } from '../connection/options.ts'
import type { EventBatch } from '../../contract/store.ts'

interface Appender {
  client: AppendClient
  appends: Appends
}

let appender: Appender | null = null

serve(storeError, (verb, command, parts) => {
  if (verb === 'open') {
    giveWay()
    return open(command as ConnectionOptions)
  }
  if (verb === 'close') {
    const ending = appender?.client.end() ?? Promise.resolve()
    appender = null
    return ending.then(endThread)
  }
  if (verb === 'times') return commitTimes
  if (verb !== 'append') throw new StoreError('internal', `unknown verb ${verb}`)
  if (appender === null) throw new StoreError('closed', 'the store is closed')
  return append(appender.appends, unpackBatches(command, parts))
})

async function open(options: ConnectionOptions): Promise<string[]> {
  const client = openAppendClient(options)
  try {
    appender = { client, appends: await openAppends(client) }
    return []
  } catch (error) {
    await client.end()
    throw error
  }
}

async function append(appends: Appends, batches: EventBatch[]): Promise<AppendAnswer> {
  const startedMs = performance.now()
  const outcomes = await appends.append(batches)
  observe(commitTimes, performance.now() - startedMs)
  return { outcomes, othersAppend: appends.othersAppend() }
}
