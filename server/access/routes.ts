/** POST /v1/sdk/access-logs (contract §11): lines of access logs, from drains and `watch --to`, and their position. */
import { Elysia, t } from 'elysia'
import type { ApiKey, Store } from '../../db/contract/store.ts'
import type { Clock } from '../clock.ts'
import { AppError } from '../errors.ts'
import { sha256Hex } from '../ids.ts'
import { trustReader } from '../http/address.ts'
import { mediaType, readBytes } from '../http/body.ts'
import type { KeyGuard } from '../http/guard.ts'
import { invalidQuery, readQuery, type Query } from '../http/request.ts'
import { json } from '../http/response.ts'
import { integer } from '../http/field-models.ts'
import { requireAdmission, type AdmissionServices } from '../ingest/admission.ts'
import type { IngestCounts, RequestCount } from '../ingest/counts.ts'
import { requestSample, type Rejections } from '../ingest/rejected.ts'
import { limits } from '../limits.ts'
import type { LogOptions } from './agent-events.ts'
import { createStreamFormat, withoutUserAgent, type StreamFormat } from './detect-format.ts'
import { formatNamed, type LogFormat } from './formats.ts'
import { accessLogsPath } from './http-sink.ts'
import type { AccessReceiver, Sender } from './receiver.ts'
import type { LogLines, LogStatus, StoreAnswer } from './sink.ts'

export interface AccessRoutesServices extends AdmissionServices {
  store: Store
  clock: Clock
  rejections: Rejections
  guard: KeyGuard
  ingestCounts: IngestCounts
  accessReceiver: AccessReceiver
}

const logParameters = {
  siteId: 'one',
  format: 'one',
  source: 'one',
  offset: 'one',
  end: 'one',
  tail: 'one',
  path: 'one',
  heading: 'one',
  epoch: 'one',
  reader: 'one',
  warm: 'one',
  keepQuery: 'one',
  keepAddresses: 'one',
  trustedProxy: 'one',
} as const

const statusParameters = {
  siteId: 'one',
  source: 'one',
  path: 'one',
  epoch: 'one',
  reader: 'one',
  behindBytes: 'one',
  problem: 'one',
  keepQuery: 'one',
  keepAddresses: 'one',
  trustedProxy: 'one',
} as const

export function accessRoutes(services: AccessRoutesServices) {
  const drainFormats = new Map<string, StreamFormat>()

  async function receive(request: Request, key: ApiKey, count: RequestCount): Promise<Response> {
    await requireAdmission(services, request)
    const query = readQuery(request, logParameters)
    checkQuery(query)
    const sender = senderOf(key, query)
    mediaType(request.headers.get('content-type'), ['text/plain', 'application/x-ndjson'])
    const bytes = await readBytes(request, {
      bytesMax: limits.bodyBytesMax,
      ratioMax: limits.bodyRatioMax,
    })
    await services.parseQueue.wait(bytes.length)
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')
    const isDrain = query.one('source') === undefined
    const format = drainFormat(
      drainFormats,
      sender,
      textOf(query, 'format') || 'auto',
      textOf(query, 'path'),
      text,
    )
    if (format === null) return json(testAnswer, 202)
    const lines = linesOf(query, text, format, isDrain)
    if (query.one('warm') === 'true') {
      await services.accessReceiver.warm(sender, lines)
      return json({ ok: true, ...zeroSums, position: lines.from }, 202)
    }
    const answer = await services.accessReceiver.store(sender, lines, isDrain)
    count.accepted = answer.sums.stored
    count.deduped = answer.sums.deduped
    count.rejected = answer.sums.bad
    recordBadLines(services, key, sender, answer)
    return json(answerOf(answer), 202)
  }

  return new Elysia()
    .get(accessLogsPath, async ({ request }) => {
      const key = await services.guard.ingest(request)
      const query = readQuery(request, statusParameters)
      checkQuery(query)
      const sender = senderOf(key, query)
      const status: LogStatus = {
        path: textOf(query, 'path'),
        source: query.one('source') === undefined ? null : textOf(query, 'source'),
        behindBytes: numberOf(query, 'behindBytes') ?? 0,
        problem: textOf(query, 'problem') || null,
      }
      return json(await services.accessReceiver.position(sender, status))
    })
    .post(
      accessLogsPath,
      async ({ request }) => {
        const key = await services.guard.ingest(request)
        return services.ingestCounts.request(key, async (count) => {
          try {
            return await receive(request, key, count)
          } catch (thrown) {
            throw recorded(services, key, thrown)
          }
        })
      },
      { parse: 'none' },
    )
}

/**
 * A request that was rejected as a whole is recorded for the ingest health page. Returns what was thrown. Text of logs
 * is omitted, because it has addresses of people. A reader that is told where a log continues lost nothing.
 */
function recorded({ rejections, clock }: AccessRoutesServices, key: ApiKey, thrown: unknown): unknown {
  if (!(thrown instanceof AppError) || thrown.status >= 500 || thrown.code === 'conflict') return thrown
  const sample = requestSample(key, clock.now(), thrown, '')
  rejections.add([{ ...sample, message: sample.message.replace(quotedLine, '.') }])
  return thrown
}

const quotedLine = /, which begins? with .*$/s

/** One record says what became of the bad lines of a request. */
function recordBadLines(
  { rejections, clock }: AccessRoutesServices,
  key: ApiKey,
  { options }: Sender,
  { sums, errors }: StoreAnswer,
): void {
  const [first] = errors
  if (sums.bad === 0 || first === undefined) return
  const where = first.line === 0 ? 'It' : `Line ${first.line}`
  const summary = `${sums.bad} of ${sums.lines} lines for the site ${options.siteId} are not stored.`
  const message = `${summary} ${where} ${first.message}.`
  const { orgId, id: keyId } = key
  rejections.add([{ orgId, keyId, atMs: clock.now(), code: 'bad_lines', message, path: '', excerpt: '' }])
}

const charsMax: { readonly [name: string]: number } = {
  source: 80,
  tail: 80,
  epoch: 80,
  reader: 80,
  path: 1_024,
  format: 200,
  problem: 500,
  heading: 2_000,
  warm: 10,
  keepAddresses: 10,
}

/** Names the first wrong parameter, also of those that are not used here. */
function checkQuery(query: Query): void {
  for (const name of Object.keys(charsMax)) textOf(query, name)
  for (const name of ['offset', 'end', 'behindBytes']) numberOf(query, name)
}

function textOf(query: Query, name: string): string {
  const text = query.one(name) ?? ''
  const max = charsMax[name]!
  if (text.length > max) throw invalidQuery(name, `${name} must have at most ${max} characters`, 'too_long')
  return text
}

function numberOf(query: Query, name: string): number | null {
  const text = query.one(name)
  if (text === undefined) return null
  if (!/^\d{1,15}$/.test(text)) throw invalidQuery(name, `${name} must be a whole number of bytes`)
  return Number(text)
}

function senderOf(key: ApiKey, query: Query): Sender {
  const siteId = query.one('siteId') ?? ''
  if (siteId === '' || siteId.length > limits.idCharsMax)
    throw invalidQuery('siteId', `siteId must have 1 to ${limits.idCharsMax} characters`, 'required')
  if (key.siteIds.length > 0 && !key.siteIds.includes(siteId)) {
    const reason = 'wrong_site'
    throw new AppError('forbidden', 'This ingest key is limited to other sites.', { reason })
  }
  const list = (name: string): string[] => (query.one(name) ?? '').split(',').filter((part) => part !== '')
  const options: LogOptions = {
    siteId,
    keepQuery: list('keepQuery'),
    keepAddresses: query.one('keepAddresses') === 'true',
    trustedProxies: list('trustedProxy'),
  }
  try {
    trustReader(options.trustedProxies)
  } catch (error) {
    throw invalidQuery('trustedProxy', error instanceof Error ? error.message : 'trustedProxy is not a range')
  }
  const reader = textOf(query, 'reader') || null
  return { orgId: key.orgId, keyId: key.id, door: 'access-log', options, reader }
}

/** What Cloudflare sends to try an address. */
const testBody = /^\{"content":"tests?"\}\s*$/

/**
 * The format of a body: the given one, or that of the key's bodies for the site with this path, which the first ones
 * showed. Null for a test of
 * the address.
 */
function drainFormat(
  streamFormats: Map<string, StreamFormat>,
  { orgId, keyId, options }: Sender,
  requestedFormat: string,
  path: string,
  text: string,
): string | null {
  if (requestedFormat !== 'auto') {
    const format = formatGiven(requestedFormat)
    if (!format.hasUserAgent) throw invalidQuery('format', `the body ${withoutUserAgent({ format })}`)
    return requestedFormat
  }
  if (text === '' || testBody.test(text)) return null
  const head = text.slice(0, headChars)
  const name = JSON.stringify([orgId, options.siteId, keyId, path])
  const stream = streamFormats.get(name) ?? createStreamFormat()
  const format = stream.read(head)
  if ('seen' in format)
    throw new AppError('unsupported_media_type', `The body is not an access log: ${format.seen}.`, {
      hint: 'Name the format with ?format=, such as format=combined.',
    })
  const problem = stream.problem()
  if (problem !== null)
    throw new AppError('unsupported_media_type', `The body ${problem}.`, {
      hint: 'Configure the server to log in the combined format.',
    })
  streamFormats.delete(name)
  streamFormats.set(name, stream)
  if (streamFormats.size > drainFormatsMax) streamFormats.delete(streamFormats.keys().next().value!)
  return format.name
}

function formatGiven(text: string): LogFormat {
  try {
    return formatNamed(text)
  } catch (error) {
    throw invalidQuery('format', error instanceof Error ? error.message : 'format is not known')
  }
}

const headChars = 256 * 1024
const drainFormatsMax = 10_000

function linesOf(query: Query, text: string, format: string, isDrain: boolean): LogLines {
  const from = isDrain ? 0 : (numberOf(query, 'offset') ?? missing('offset'))
  const end = numberOf(query, 'end')
  const cutTail = textOf(query, 'tail')
  if (end !== null && (end < from + text.length || cutTail === ''))
    throw invalidQuery('end', 'end must be at or after the end of the body, and comes with tail')
  const source = isDrain ? `body:${sha256Hex(text)}` : textOf(query, 'source')
  if (source === '' || source.startsWith('('))
    throw invalidQuery('source', 'source must have 1 to 80 characters')
  return {
    source,
    format,
    from,
    text,
    path: textOf(query, 'path') || (isDrain ? 'log drain' : source),
    heading: textOf(query, 'heading'),
    to: end ?? from + text.length,
    cutTail: end === null ? null : cutTail,
    epoch: textOf(query, 'epoch'),
  }
}

function missing(name: string): never {
  throw invalidQuery(name, `${name} is required with source`, 'required')
}

const zeroSums = { lines: 0, stored: 0, deduped: 0, people: 0, excluded: 0, bad: 0, errors: [] }
const testAnswer = { ok: true, ...zeroSums, position: 0 }

function answerOf({ state, position, tail, sums, errors }: StoreAnswer) {
  if (state === 'behind')
    throw new AppError(
      'conflict',
      `This log was read to offset ${position}. Nothing of this request was stored.`,
      {
        hint: 'Continue at this position if the log has the line with the hash in tail there.',
        members: { position, tail },
      },
    )
  return { ok: sums.bad === 0, ...sums, errors, state, position, tail }
}

export const accessAnswerModel = t.Object({
  ok: t.Boolean({ description: 'True when no line is bad.' }),
  lines: integer({ minimum: 0, description: 'stored + deduped + people + excluded + bad' }),
  stored: integer({ minimum: 0, description: 'Requests by agents that were stored.' }),
  deduped: integer({ minimum: 0, description: 'Requests by agents that were stored before.' }),
  people: integer({ minimum: 0 }),
  excluded: integer({ minimum: 0, description: 'Assets, other programs, comments and blank lines.' }),
  bad: integer({ minimum: 0, description: 'Lines that do not fit the format.' }),
  errors: t.Array(t.Object({ line: integer({ minimum: 0 }), message: t.String() }), {
    description: 'The first 20 bad lines, counted from 1.',
  }),
  state: t.Optional(t.String({ description: 'stored, or known when all lines were stored before.' })),
  position: integer({ minimum: 0, description: 'Where the log continues.' }),
  tail: t.Optional(t.String({ description: 'Hash of the line that ends at the position.' })),
})

export const accessPositionModel = t.Object({
  position: integer({ minimum: 0, description: '0 when no part of the log is stored.' }),
  tail: t.String({ description: 'Hash of the line that ends there.' }),
  epoch: t.String(),
  isWarm: t.Boolean(),
})
