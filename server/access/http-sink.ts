/** Sends the lines of a log to an appliance on another machine: the sink behind `watch --to`. */
import { AppError, errorStatus, type ErrorCode } from '../errors.ts'
import type { LogOptions } from './agent-events.ts'
import {
  noLines,
  type LineSums,
  type LogLines,
  type LogPosition,
  type Sink,
  type StoreAnswer,
} from './sink.ts'

export interface HttpSinkOptions {
  url: string // of the appliance, without a trailing slash
  key: string
  options: LogOptions
  reader: string
}

export const accessLogsPath = '/v1/sdk/access-logs'
const timeoutMs = 60_000
/** Claims of remote readers end after 15 s without a sign of life. */
const claimMs = 20_000
/** The appliance refuses bodies that grow more than a hundredfold. */
const ratioMax = 50

export function httpSink({ url, key, options, reader }: HttpSinkOptions): Sink {
  const { siteId, keepQuery, keepAddresses, trustedProxies } = options
  const common: Parameters = {
    siteId,
    reader,
    keepQuery: keepQuery.join(','),
    trustedProxy: trustedProxies.join(','),
    keepAddresses: keepAddresses ? 'true' : '',
  }
  const send = async <T>(method: 'GET' | 'POST', parameters: Parameters, text?: string): Promise<T> => {
    const entries = Object.entries({ ...common, ...parameters }).filter(([, value]) => value !== '')
    const query = new URLSearchParams(entries)
    const headers: Record<string, string> = { authorization: `Bearer ${key}`, 'content-type': 'text/plain' }
    const init: BunFetchRequestInit = { method, headers, signal: AbortSignal.timeout(timeoutMs) }
    if (text !== undefined) {
      const bytes = Buffer.from(text, 'latin1')
      const packed = Bun.gzipSync(bytes)
      const isPacked = packed.length < bytes.length && packed.length * ratioMax > bytes.length
      if (isPacked) headers['content-encoding'] = 'gzip'
      init.body = isPacked ? packed : bytes
    }
    const response = await fetch(`${url}${accessLogsPath}?${query}`, init)
    const answer = await response.json().catch(() => null)
    if (response.ok && answer !== null) return answer as T
    throw refusalOf(response.status, answer)
  }
  const post = async (lines: LogLines, extraParameters: Parameters): Promise<StoreAnswer> => {
    const { source, path, format, heading, from, to, text, cutTail, epoch } = lines
    const cut = cutTail === null ? {} : { end: String(to), tail: cutTail }
    const parameters = {
      source,
      path,
      format,
      heading,
      epoch,
      offset: String(from),
      ...cut,
      ...extraParameters,
    }
    try {
      return answerOf(await send<WireAnswer>('POST', parameters, text))
    } catch (error) {
      const members = error instanceof AppError ? error.details.members : undefined
      const { position, tail } = members ?? {}
      if (typeof position !== 'number' || typeof tail !== 'string') throw error
      return { state: 'behind', position, tail, sums: noLines(), errors: [] }
    }
  }
  return {
    claimMs,
    position: ({ path, source, behindBytes, problem }) =>
      send<LogPosition>('GET', {
        path,
        source: source ?? '',
        behindBytes: String(behindBytes),
        problem: problem ?? '',
      }),
    store: (lines) => post(lines, {}),
    warm: async (lines) => void (await post(lines, { warm: 'true' })),
  }
}

/** The answer has the counts beside the position. */
type WireAnswer = Omit<StoreAnswer, 'sums'> & LineSums

function answerOf({ state, position, tail, errors, ...sums }: WireAnswer): StoreAnswer {
  const { lines, stored, deduped, people, excluded, bad } = sums
  return { state, position, tail, errors, sums: { lines, stored, deduped, people, excluded, bad } }
}

type Parameters = { [name: string]: string }

/** The error that the appliance sent, or one that names what answered instead. */
function refusalOf(status: number, answer: unknown): AppError {
  const { error, message, hint, position, tail } = (answer ?? {}) as { [name: string]: unknown }
  if (typeof error !== 'string' || !Object.hasOwn(errorStatus, error) || typeof message !== 'string') {
    const code = status >= 500 || status === 429 ? 'unavailable' : 'not_found'
    return new AppError(
      code,
      `The address answered with status ${status}, so it is not a Sightglass appliance.`,
      {
        hint: 'check the address after --to',
      },
    )
  }
  return new AppError(error as ErrorCode, message, {
    ...(typeof hint === 'string' ? { hint } : {}),
    ...(position === undefined ? {} : { members: { position, tail } }),
  })
}
