/** Handles a push of tools or site memory: admission, a validated body with its numbers as sent, and its errors. */
import { isUtf8 } from 'node:buffer'
import { AppError, type Issue } from '../../errors.ts'
import { mediaType, notUtf8, readBytes } from '../../http/body.ts'
import { inSlices, slices, type Work } from '../../http/slices.ts'
import { checkSchema, type Schema } from '../../http/validate.ts'
import { limits } from '../../limits.ts'
import { longValue, pastSpace, type Steps } from '../../text/json-steps.ts'
import { exactInSteps, parseInSteps } from '../../text/json-values.ts'
import { byteOrderMark } from '../../ingest/accept.ts'
import { requireAdmission, type ParseQueue } from '../../ingest/admission.ts'
import { isRestricted, requestSample, restrictedIssue, type Rejections } from '../../ingest/rejected.ts'
import { json } from '../../http/response.ts'
import { isStorable } from '../../text/text.ts'
import type { ApiKey, Store } from '../../../db/contract/store.ts'
import type { Clock } from '../../clock.ts'
import type { KeyGuard } from '../../http/guard.ts'
import type { DiskWatch } from '../../system/disk.ts'
import type { IngestCounts } from '../../ingest/counts.ts'

export interface PushServices {
  store: Store
  clock: Clock
  guard: KeyGuard
  disk: DiskWatch
  rejections: Rejections
  ingestCounts: IngestCounts
  parseQueue: ParseQueue
  fail(reason: string, holdsOnlyCopy?: boolean): void
}

/** A push whose key is valid, before its query and body are read. */
export interface SentPush {
  request: Request
  key: ApiKey
  work: Work
  /** Called with the start of the body, for the sample of a rejected request. */
  sawText(text: string): void
}

/** The handler of a push route: `store` stores all of it or throws, and returns the fields of the 202 response. */
export function pushHandler(services: PushServices, store: (pushRequest: SentPush) => Promise<object>) {
  return async ({ request }: { request: Request }): Promise<Response> => {
    const key = await services.guard.ingest(request)
    return services.ingestCounts.request(key, async () => {
      await requireAdmission(services, request)
      let sentText = ''
      const sawText = (text: string) => void (sentText = text)
      try {
        return json(
          { ok: true, ...(await store({ request, key, work: slices.begin(key.orgId), sawText })) },
          202,
        )
      } catch (thrown) {
        if (thrown instanceof AppError)
          services.rejections.add([requestSample(key, services.clock.now(), thrown, sentText)])
        throw thrown
      }
    })
  }
}

interface Push {
  siteId: string
  body: { [name: string]: unknown }
  /** JSON texts in it, with numbers as they were spelled. Null when `JSON.stringify` spells them so. */
  exact: { [name: string]: unknown } | null
}

/** Throws 4xx in the order of the contract. `levels`: how deep in the body its stored texts are. */
export async function readPush(
  { store, parseQueue }: Pick<PushServices, 'store' | 'parseQueue'>,
  { request, key, sawText, work }: SentPush,
  schema: Schema,
  levels: number,
): Promise<Push> {
  mediaType(request.headers.get('content-type'), ['application/json'])
  const bytes = await readBytes(request, { bytesMax: limits.bodyBytesMax, ratioMax: limits.bodyRatioMax })
  await parseQueue.wait(bytes.length)
  const json = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  sawText(json.toString('utf8', 0, limits.rejectedExcerptBytesMax))
  const push = await inSlices(parsePush(json, levels), work)
  const issues: Issue[] = []
  checkSchema(schema, push.body, issues)
  if (issues.length > 0) throw invalidPush(issues)
  await inSlices(requireStorable(json, push.body), work)
  const siteId = String(push.body['siteId'])
  if (key.siteIds.length > 0 && !key.siteIds.includes(siteId)) {
    const issue = { path: 'siteId', code: 'wrong_site', message: 'is not allowed for this ingest key' }
    throw wrongSite('This ingest key is limited to other sites.', issue)
  }
  if (await isRestricted(store, key, siteId))
    throw wrongSite('This ingest key cannot write to this site.', restrictedIssue())
  return { ...push, siteId }
}

/** A body that is valid JSON within the limits; the members are checked afterwards. */
function* parsePush(json: Buffer, levels: number): Steps<Omit<Push, 'siteId'>> {
  if (!isUtf8(json)) throw notUtf8()
  const start = yield* pastSpace(json, json.subarray(0, 3).equals(byteOrderMark) ? 3 : 0)
  const scan = yield* longValue(json, start)
  if (scan.depth > limits.jsonDepthMax) {
    const message = `must not be nested deeper than ${limits.jsonDepthMax} levels`
    throw invalidPush([{ path: '', code: 'too_deep', message }])
  }
  if (scan.members > limits.pushValuesMax) {
    const message = `must have at most ${limits.pushValuesMax} values`
    throw invalidPush([{ path: '', code: 'too_many', message }])
  }
  const body = yield* parseInSteps(json, start)
  if (body === null || (yield* pastSpace(json, body.end)) !== json.length)
    throw new AppError(
      'invalid_json',
      start === json.length ? 'The body is empty.' : 'The body is not valid JSON.',
    )
  const exact = scan.isExact ? null : yield* exactInSteps(json, start, levels)
  return { body: body.value as Push['body'], exact: (exact?.value ?? null) as Push['exact'] }
}

function wrongSite(message: string, issue: Issue): AppError {
  return new AppError('forbidden', message, { reason: 'wrong_site', issues: [issue] })
}

/** A 400 that lists the issues; nothing of the push is stored. */
export function invalidPush(issues: Issue[]): AppError {
  const first = issues[0]
  const issueText = first === undefined ? '' : ` ${first.path || 'The body'} ${first.message}.`
  return new AppError('invalid_body', `Nothing was stored.${issueText}`, { issues })
}

/** Only these escapes make a character that cannot be stored: UTF-8 has none. */
const unstorableEscapes = ['\\u0000', '\\ud', '\\uD']

function* requireStorable(json: Buffer, body: Push['body']): Steps<void> {
  if (!unstorableEscapes.some((escape) => json.includes(escape))) return
  for (const field of Object.entries(body)) {
    if (yield* everyStringStorable(field)) continue
    const [name] = field
    const path = isStorable(name) && name.length <= 60 ? name : ''
    const message = 'must not contain NUL or an unpaired surrogate'
    throw invalidPush([{ path, code: 'wrong_format', message }])
  }
}

function* everyStringStorable(value: unknown): Steps<boolean> {
  if (typeof value === 'string') return isStorable(value)
  if (typeof value !== 'object' || value === null) return true
  yield null
  for (const name in value) {
    if (!isStorable(name)) return false
    const inner = (value as { [name: string]: unknown })[name]
    if (typeof inner === 'string' ? !isStorable(inner) : !(yield* everyStringStorable(inner))) return false
  }
  return true
}
