/** POST /v1/traces, /v1/logs and /v1/metrics: the receiver of OpenTelemetry exporters (contract §13). */
import { Elysia } from 'elysia'
import { AppError } from '../errors.ts'
import { mediaType, readBytes } from '../http/body.ts'
import { otlpAnswer, otlpWarning, type OtlpEncoding } from '../http/otlp-answer.ts'
import { contextOf, readQuery } from '../http/request.ts'
import { inSlices, slices } from '../http/slices.ts'
import { requireAdmission, type ParseQueue } from '../ingest/admission.ts'
import { requestSample } from '../ingest/rejected.ts'
import { answerEvents, type IngestRoutesServices } from '../ingest/routes.ts'
import { limits } from '../limits.ts'
import { bodyKind, jsonLists, type BodyKind, type ListNames } from './json.ts'
import {
  countDataPoints,
  logMapping,
  receive,
  spanMapping,
  type OtlpRequest,
  type ReceiveServices,
} from './receive.ts'
import type { ApiKey } from '../../db/contract/store.ts'
import type { IngestCounts } from '../ingest/counts.ts'
import type { KeyGuard } from '../http/guard.ts'

interface OtlpRoutesServices extends ReceiveServices, IngestRoutesServices {
  guard: KeyGuard
  ingestCounts: IngestCounts
  parseQueue: ParseQueue
}

/** A route of one signal. */
interface Signal {
  lists: ListNames
  /** Whether bodies of `/v1/sdk/events` are accepted: clients of the product before this one post them here. */
  takesEvents: boolean
  work(request: OtlpRequest): Promise<Response>
}

export function otlpRoutes(services: OtlpRoutesServices) {
  const post =
    (signal: Signal) =>
    async ({ request }: { request: Request }) => {
      const key = await services.guard.ingest(request)
      const count = services.ingestCounts.begin()
      let refused: 0 | 1 = 1
      try {
        await requireAdmission(services, request, limits.otlpBodyBytesMax)
        const received = await read(services, request, key)
        const kind = await kindOf(received, key, signal.lists)
        if (kind === 'events' && signal.takesEvents) {
          contextOf(request).writeError = () => null // errors have the common form, too
          const response = await answerEvents(services, request, received.body, { key, count })
          refused = 0
          return response
        }
        if (kind === 'events' || kind === 'other') return withoutItems(services, key, received, signal.lists)
        const response = await signal.work({ ...received, key, count }).catch((thrown: unknown) => {
          throw recorded(services, key, thrown)
        })
        refused = 0
        return response
      } finally {
        services.ingestCounts.end(key, count, refused)
      }
    }
  const options = { parse: 'none' } as const
  return new Elysia()
    .post(
      '/v1/traces',
      post({
        lists: jsonLists.traces,
        takesEvents: true,
        async work(request) {
          const mapping = spanMapping(request, services.otlp)
          const { refused, items, reason } = await receive(services, request, mapping)
          const message = `${refused} of ${items} spans were rejected: ${reason}.`
          return otlpAnswer(request.encoding, 'rejectedSpans', refused, message)
        },
      }),
      options,
    )
    .post(
      '/v1/logs',
      post({
        lists: jsonLists.logs,
        takesEvents: false,
        async work(request) {
          const mapping = logMapping(request, services.otlp)
          const { refused, items, reason } = await receive(services, request, mapping)
          const message = `${refused} of ${items} log records were rejected: ${reason}.`
          return otlpAnswer(request.encoding, 'rejectedLogRecords', refused, message)
        },
      }),
      options,
    )
    .post(
      '/v1/metrics',
      post({
        lists: jsonLists.metrics,
        takesEvents: false,
        async work(request) {
          const points = await countDataPoints(request)
          const message = 'Metrics are not stored. Set OTEL_METRICS_EXPORTER=none to stop sending them.'
          return otlpAnswer(request.encoding, 'rejectedDataPoints', points, message)
        },
      }),
      options,
    )
}

interface ReceivedBody {
  encoding: OtlpEncoding
  body: Uint8Array
}

async function read(services: OtlpRoutesServices, request: Request, key: ApiKey): Promise<ReceivedBody> {
  try {
    return { encoding: encodingOf(request), body: await bodyOf(services, request) }
  } catch (thrown) {
    throw recorded(services, key, thrown)
  }
}

/** Protobuf has numbers for names, the same in all signals. A malformed body is refused when its items are read. */
async function kindOf({ encoding, body }: ReceivedBody, key: ApiKey, lists: ListNames): Promise<BodyKind> {
  if (encoding !== 'json') return 'signal'
  return inSlices(bodyKind(body, lists), slices.begin(key.orgId)).catch(() => 'signal' as const)
}

/**
 * A body without the list of its signal. OTLP has fields that a receiver does not know ignored with a 200: so the
 * answer has a warning, and the ingest health page counts the request.
 */
function withoutItems(
  { rejections, clock }: OtlpRoutesServices,
  key: ApiKey,
  { encoding, body }: ReceivedBody,
  [byResource]: ListNames,
): Response {
  const message = `The body has no "${byResource}". Nothing in it was stored.`
  const issues = [{ path: byResource, code: 'required', message: 'is required' }]
  const error = new AppError('invalid_body', message, { issues })
  const start = Buffer.from(body.subarray(0, limits.rejectedExcerptBytesMax)).toString()
  rejections.add([requestSample(key, clock.now(), error, start)])
  return otlpWarning(encoding, message)
}

const hint = 'Set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf. gRPC is not supported.'

function encodingOf(request: Request): OtlpEncoding {
  try {
    const type = request.headers.get('content-type')
    return mediaType(type, ['application/x-protobuf', 'application/json']) === 'application/json'
      ? 'json'
      : 'protobuf'
  } catch (thrown) {
    if (!(thrown instanceof AppError)) throw thrown
    throw new AppError('unsupported_media_type', thrown.message, { hint })
  }
}

async function bodyOf({ parseQueue }: OtlpRoutesServices, request: Request): Promise<Uint8Array> {
  readQuery(request, {})
  const body = await readBytes(request, { bytesMax: limits.otlpBodyBytesMax, ratioMax: limits.bodyRatioMax })
  await parseQueue.wait(body.length)
  return body
}

/** A request that was rejected as a whole is recorded for the ingest health page. Returns what was thrown. */
function recorded({ rejections, clock }: OtlpRoutesServices, key: ApiKey, thrown: unknown): unknown {
  if (thrown instanceof AppError && thrown.status < 500)
    rejections.add([requestSample(key, clock.now(), thrown, '')])
  return thrown
}
