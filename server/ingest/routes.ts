/** POST /v1/sdk/events (contract §4) and GET /v1/limits: checked in the contract's order, answered after the fsync. */
import { Elysia } from 'elysia'
import type { ApiKey, AppendResult, EventRecord } from '../../db/contract/store.ts'
import { AppError } from '../errors.ts'
import { json } from '../http/response.ts'
import { decodeBody, readBytes } from '../http/body.ts'
import { contextOf } from '../http/request-context.ts'
import { readQuery } from '../http/query.ts'
import { limits } from '../limits.ts'
import type { Parts } from '../services.ts'
import { acceptEvents, eventsMediaType, type Accepted } from './accept.ts'
import { batchCount, type RequestCount } from './counts.ts'
import { linesText } from './lines-text.ts'
import { nearMisses } from './near-misses.ts'
import { publishedLimits } from './published-limits.ts'
import { allRejected, guardRailRejected, type Rejected } from './rejected.ts'
import { refuseRestricted } from './refuse-restricted.ts'
import { requireRoom, writeOrExplain } from './admission.ts'
import { eventSamples, requestSample } from './samples.ts'

export function ingestRoutes(parts: Parts) {
  return new Elysia()
    .get('/v1/limits', ({ request }) => {
      readQuery(request, {})
      return json({ ...publishedLimits, rateLimits: parts.rateLimits.told })
    })
    .post(
      '/v1/sdk/events',
      async ({ request }) => {
        const key = await parts.guard.ingest(request)
        return parts.ingestCounts.request(key, async (count) => {
          await requireRoom(parts, request)
          const taken = await takeEvents(parts, request, key)
          const { records, ...rest } = await refuseRestricted(parts.store, key, taken)
          count.newestMs = newestOf(records)
          // What waits for the disk is kept by the store alone, packed: the records are garbage from here on.
          const result = await append(parts, { request, key }, records, rest.rejected.length, count)
          return answer(parts, key, rest, result, count)
        })
      },
      { parse: 'none' },
    )
}

/** Reads and checks the body; a request refused as a whole is remembered for the ingest-health page. */
async function takeEvents(parts: Parts, request: Request, key: ApiKey): Promise<Accepted> {
  let text = ''
  try {
    readQuery(request, {})
    const mediaType = eventsMediaType(request.headers.get('content-type'))
    const bodyLimits = { bytesMax: limits.bodyBytesMax, ratioMax: limits.bodyRatioMax }
    const bytes = await readBytes(request, bodyLimits)
    await parts.turns.take(bytes.length)
    text = mediaType === 'application/x-ndjson' ? linesText(bytes) : decodeBody(bytes)
    const accepted = acceptEvents(text, mediaType, key.siteIds)
    noteNearMisses(parts, key, accepted)
    return accepted
  } catch (thrown) {
    if (thrown instanceof AppError)
      parts.rejections.keep([requestSample(key, parts.clock.now(), thrown, text)])
    throw thrown
  }
}

/** Looks at one event of a request: what a sender misspells in one event, it misspells in all. */
function noteNearMisses({ ingestCounts }: Parts, key: ApiKey, { records, rejected }: Accepted): void {
  const json = records[0]?.json ?? rejected[0]?.excerpt
  if (json === undefined) return
  try {
    const found = nearMisses(JSON.parse(json))
    if (found.length > 0) ingestCounts.nearMisses(key, found)
  } catch {
    // A rejected line need not be JSON, and the excerpt of a long one is cut.
  }
}

async function append(
  parts: Parts,
  { request, key }: { request: Request; key: ApiKey },
  records: EventRecord[],
  rejected: number,
  count: RequestCount,
): Promise<AppendResult> {
  if (records.length === 0) return { accepted: 0, deduped: 0, rejected: [] }
  const now = parts.clock.now()
  const receivedAtMs = Math.round(parts.clockGuard.arrival())
  const batch = {
    ...{ orgId: key.orgId, keyId: key.id, receivedAtMs, events: records },
    count: batchCount(rejected, count.newestMs, now),
  }
  const appended = parts.store.events.append(batch)
  contextOf(request).body?.release() // from here on it counts as queued
  const result = await writeOrExplain(parts, appended)
  count.isWritten = true
  return result
}

function newestOf(records: EventRecord[]): number | null {
  return records.length === 0
    ? null
    : records.reduce((newest, { occurredAtMs }) => Math.max(newest, occurredAtMs), -Infinity)
}

/** 202 with the counts; the issues when some were rejected; 400 or 403 when all were. */
function answer(
  parts: Parts,
  key: ApiKey,
  accepted: Omit<Accepted, 'records'>,
  result: AppendResult,
  count: RequestCount,
): Response {
  const rejected: Rejected[] = [...accepted.rejected]
  for (const railed of result.rejected)
    rejected.push(guardRailRejected(accepted.positions[railed.index]!, railed))
  count.accepted = result.accepted
  count.deduped = result.deduped
  count.rejected = rejected.length
  if (rejected.length === 0)
    return json({ ok: true, accepted: result.accepted, deduped: result.deduped }, 202)
  rejected.sort((a, b) => a.index - b.index)
  parts.rejections.keep(eventSamples(key, parts.clock.now(), rejected))
  if (rejected.length === accepted.sent) throw allRejected(rejected)
  const errors = rejected.flatMap((event) => event.issues)
  const counts = { accepted: result.accepted, deduped: result.deduped, rejected: rejected.length }
  return json({ ok: false, ...counts, errors }, 202)
}
