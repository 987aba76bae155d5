/** Reads and validates the body of a push (tools, site memory), and preserves the exact spelling of its numbers. */
import type { ApiKey, Store } from '../../../db/contract/store.ts'
import { AppError, type Issue } from '../../errors.ts'
import { mediaType, parseJson, readBody } from '../../http/body.ts'
import { checkSchema, type Schema } from '../../http/validate.ts'
import { limits } from '../../limits.ts'
import { parseExact, skipSpace, skipValue, type Scan } from '../../text/json-scan.ts'
import { isRestricted, restrictedIssue } from '../../ingest/rejected.ts'
import { isStorable } from '../../text/text.ts'

export interface Push {
  siteId: string
  body: { [member: string]: unknown }
  /** The same with its numbers as they were spelled, for the stored JSON text. */
  exact: { [member: string]: unknown }
}

/** Throws 4xx in the order of the contract; calls `read` with the text, for the sample of a rejected request. */
export async function readPush(
  store: Pick<Store, 'sites'>,
  request: Request,
  key: ApiKey,
  schema: Schema,
  read: (text: string) => void,
): Promise<Push> {
  mediaType(request.headers.get('content-type'), ['application/json'])
  const text = await readBody(request, { bytesMax: limits.bodyBytesMax, ratioMax: limits.bodyRatioMax })
  read(text)
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
