/** Reads the body of a test delivery, and the payload in it as exact JSON text: what is sent is what was given. */
import { parseJson, readBody } from '../../http/body.ts'
import { isDeeperThan } from '../../text/json-scan.ts'
import { mediaType } from '../../http/media-type.ts'
import { exactJson } from '../../text/json-scan.ts'
import { skipString, skipValue } from '../../text/json-scan.ts'
import { limits } from '../../limits.ts'
import { wrongField } from '../../http/body-fields.ts'

const envelopeBytesMax = 16 * 1024 // the url, names and white space around the payload

export async function readTestBody(request: Request): Promise<{ url: unknown; payload: string }> {
  mediaType(request.headers.get('content-type'), ['application/json'])
  const text = await readBody(request, { bytesMax: limits.webhookPayloadBytesMax + envelopeBytesMax })
  const value = parseJson(text)
  if (!isObject(value)) throw wrongField('', 'The body must be a JSON object.', 'wrong_type')
  if (isDeeperThan(value, limits.jsonDepthMax)) {
    throw wrongField('', `The body is nested deeper than ${limits.jsonDepthMax} levels.`, 'too_deep')
  }
  const { url, payload } = value
  if (payload === undefined) return { url, payload: '{}' }
  if (!isObject(payload)) throw wrongField('payload', 'payload must be an object', 'wrong_type')
  const exact = memberText(exactJson(text), 'payload')
  if (Buffer.byteLength(exact) > limits.webhookPayloadBytesMax) {
    const message = `payload must have at most ${limits.webhookPayloadBytesMax} bytes`
    throw wrongField('payload', message, 'too_large')
  }
  return { url, payload: exact }
}

function isObject(value: unknown): value is { [member: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The text of one member of an object that `exactJson` wrote: compact, every name once. */
export function memberText(object: string, name: string): string {
  const wanted = JSON.stringify(name)
  for (let at = 1; object[at] === '"';) {
    const nameEnd = skipString(object, at)
    const end = skipValue(object, nameEnd + 1, { depth: 0, isExact: true })
    if (object.slice(at, nameEnd) === wanted) return object.slice(nameEnd + 1, end)
    at = end + 1
  }
  throw new Error(`invariant: the object has a member ${name}`)
}
