/** `sightglass log-level`: changes how much a running server logs, until it is started again. */
import type { Json } from '../../../db/contract/store.ts'
import { AppError, UsageError } from '../../errors.ts'
import type { LogLevel } from '../../log.ts'
import { oneOf } from '../option-values.ts'
import { cell, type DataVerb } from './data-verb.ts'
import { textOf, type Params } from '../../runtime/params.ts'
import type { VerbContext } from '../../runtime/verb-context.ts'

const readLevel: (text: string) => LogLevel = oneOf('debug', 'info', 'warn', 'error').read

export const logLevelVerb: DataVerb = {
  writes: false,
  params({ words: [level] }) {
    if (level === undefined)
      throw new UsageError('say which: debug, info, warn or error', 'sightglass help log-level')
    return { level: readLevel(level) }
  },
  text: ({ before, level }) => `The server logs ${cell(level)} and above; it was ${cell(before)}.`,
}

export async function setLogLevel({ log }: VerbContext, params: Params): Promise<Json> {
  const level = readLevel(textOf(params, 'level'))
  if (log === undefined) {
    throw new AppError('conflict', 'No server runs on this data folder.', {
      hint: 'start it with --log-level',
    })
  }
  return { before: log.setLevel(level), level }
}
