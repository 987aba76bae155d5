/** Handles a push of tools or site memory: admission, a validated body with its numbers as sent, and its errors. */
import { AppError, type Issue } from '../../errors.ts'
import { mediaType, parseJson, readBody } from '../../http/body.ts'
import { checkSchema, type Schema } from '../../http/validate.ts'
import { limits } from '../../limits.ts'
import { parseExact, skipSpace, skipValue, type Scan } from '../../text/json-scan.ts'
import { requireAdmission, type ParseQueue } from '../../ingest/admission.ts'
import { isRestricted, requestSample, restrictedIssue, type Rejections } from '../../ingest/rejected.ts'
import { json } from '../../http/response.ts'
import { isStorable } from '../../text/text.ts'
import type { ApiKey, Store } from '../../../db/contract/store.ts'
import type { Clock } from '../../clock.ts'
import type { KeyGuard } from '../../http/guard.ts'
import type { DiskWatch } from '../../operations/health/disk.ts'
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
  /** Called with the text of the body, for the sample of a rejected request. */
  sawText(text: string): void
}

/** The handler of a push route: `store` stores all of it or throws, and returns the fields of the 202 response. */
export function pushHandler(services: PushServices, store: (sent: SentPush) => Promise<object>) {
  return async ({ request }: { request: Request }): Promise<Response> => {
    const key = await services.guard.ingest(request)
    return services.ingestCounts.request(key, async () => {
      await requireAdmission(services, request)
      let sentText = ''
      const sawText = (text: string) => void (sentText = text)
      try {
        return json({ ok: true, ...(await store({ request, key, sawText })) }, 202)
      } catch (thrown) {
        if (thrown instanceof AppError)
          services.rejections.add([requestSample(key, services.clock.now(), thrown, sentText)])
        throw thrown
      }
    })
  }
}

export interface Push {
  siteId: string
  body: { [name: string]: unknown }
  /** The same with its numbers as they were spelled, for the stored JSON text. */
  exact: { [name: string]: unknown }
}

/** Throws 4xx in the order of the contract. */
export async function readPush(
  store: Pick<Store, 'sites'>,
  { request, key, sawText }: SentPush,
  schema: Schema,
): Promise<Push> {
  mediaType(request.headers.get('content-type'), ['application/json'])
  const text = await readBody(request, { bytesMax: limits.bodyBytesMax, ratioMax: limits.bodyRatioMax })
  sawText(text)
  const scan: Scan = { depth: 0, isExact: true }
  skipValue(text, skipSpace(text, 0), scan)
  if (scan.depth > limits.jsonDepthMax) {
    const message = `must not be nested deeper than ${limits.jsonDepthMax} levels`
    throw invalidPush([{ path: '', code: 'too_deep', message }])
  }
  const body = parseJson(text)
  const issues: Issue[] = []
  checkSchema(schema, body, issues)
  if (issues.length > 0) throw invalidPush(issues)
  const push = {
    body: body as Push['body'],
    exact: (scan.isExact ? body : parseExact(text)) as Push['exact'],
  }
  const siteId = String(push.body['siteId'])
  requireStorable(push.body)
  if (key.siteIds.length > 0 && !key.siteIds.includes(siteId)) {
    const issue = { path: 'siteId', code: 'wrong_site', message: 'is not allowed for this ingest key' }
    throw wrongSite('This ingest key is limited to other sites.', issue)
  }
  if (await isRestricted(store, key, siteId))
    throw wrongSite('This ingest key cannot write to this site.', restrictedIssue())
  return { ...push, siteId }
}

function wrongSite(message: string, issue: Issue): AppError {
  return new AppError('forbidden', message, { reason: 'wrong_site', issues: [issue] })
}

/** A 400 that lists the issues; nothing of the push is stored. */
export function invalidPush(issues: Issue[]): AppError {
  const first = issues[0]
  const what = first === undefined ? '' : ` ${first.path || 'The body'} ${first.message}.`
  return new AppError('invalid_body', `Nothing was stored.${what}`, { issues })
}

const maybeUnstorable = /\\u(?:0000|d[89a-f])/

function requireStorable(body: Push['body']): void {
  for (const [name, value] of Object.entries(body)) {
    // JSON.stringify escapes NUL and unpaired surrogates; only then is every string checked.
    if (maybeUnstorable.test(JSON.stringify([name, value])) && !everyStringStorable([name, value])) {
      const path = isStorable(name) && name.length <= 60 ? name : ''
      const message = 'must not contain NUL or an unpaired surrogate'
      throw invalidPush([{ path, code: 'wrong_format', message }])
    }
  }
}

function everyStringStorable(value: unknown): boolean {
  if (typeof value === 'string') return isStorable(value)
  if (typeof value !== 'object' || value === null) return true
  return Object.entries(value).every(([name, inner]) => isStorable(name) && everyStringStorable(inner))
}
