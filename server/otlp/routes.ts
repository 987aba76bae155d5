/** POST /v1/traces, /v1/logs and /v1/metrics: the receiver of OpenTelemetry exporters (contract §13). */
import { Elysia } from 'elysia'
import { AppError } from '../errors.ts'
import { mediaType, readBytes } from '../http/body.ts'
import { otlpAnswer, type OtlpEncoding } from '../http/otlp-answer.ts'
import { readQuery } from '../http/request.ts'
import { requireAdmission, type ParseQueue } from '../ingest/admission.ts'
import { requestSample } from '../ingest/rejected.ts'
import { limits } from '../limits.ts'
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

export interface OtlpRoutesServices extends ReceiveServices {
  guard: KeyGuard
  ingestCounts: IngestCounts
  parseQueue: ParseQueue
}

export function otlpRoutes(services: OtlpRoutesServices) {
  const post =
    (work: (request: OtlpRequest) => Promise<Response>) =>
    async ({ request }: { request: Request }) => {
      const key = await services.guard.ingest(request)
      return services.ingestCounts.request(key, async (count) => {
        await requireAdmission(services, request, limits.otlpBodyBytesMax)
        try {
          const encoding = encodingOf(request)
          return await work({ key, count, encoding, body: await bodyOf(services, request) })
        } catch (thrown) {
          if (thrown instanceof AppError && thrown.status < 500) reject(services, key, thrown)
          throw thrown
        }
      })
    }
  const options = { parse: 'none' } as const
  return new Elysia()
    .post(
      '/v1/traces',
      post(async (request) => {
        const { refused, items, reason } = await receive(
          services,
          request,
          spanMapping(request, services.otlp),
        )
        const message = `${refused} of ${items} spans were rejected: ${reason}.`
        return otlpAnswer(request.encoding, 'rejectedSpans', refused, message)
      }),
      options,
    )
    .post(
      '/v1/logs',
      post(async (request) => {
        const { refused, items, reason } = await receive(
          services,
          request,
          logMapping(request, services.otlp),
        )
        const message = `${refused} of ${items} log records were rejected: ${reason}.`
        return otlpAnswer(request.encoding, 'rejectedLogRecords', refused, message)
      }),
      options,
    )
    .post(
      '/v1/metrics',
      post(async (request) => {
        const points = await countDataPoints(request)
        const message = 'Metrics are not stored. Set OTEL_METRICS_EXPORTER=none to stop sending them.'
        return otlpAnswer(request.encoding, 'rejectedDataPoints', points, message)
      }),
      options,
    )
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

/** Records a request that was rejected as a whole for the ingest health page. */
function reject({ rejections, clock }: OtlpRoutesServices, key: ApiKey, error: AppError): void {
  rejections.add([requestSample(key, clock.now(), error, '')])
}
