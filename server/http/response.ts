/** Answers made from JSON: a value to serialize, or text that is JSON already. */
import { AppError } from '../errors.ts'
import { limits } from '../limits.ts'
import { ownerOf, type RequestContext } from './request-context.ts'
import { errorResponse, retryAfter } from './errors.ts'
import { commonHeaders } from './headers.ts'
import { streamText } from './stream-text.ts'

export function json(value: unknown, status = 200, headers: Record<string, string> = {}): Response {
  return jsonText(JSON.stringify(value), status, headers)
}

const jsonHeaders = commonHeaders('application/json')

/** Texts of answers that count among those under way, until `counted` sends them. */
const largeTexts = new WeakMap<Response, string>()

export function jsonText(text: string, status = 200, headers: Record<string, string> = {}): Response {
  const isLarge = text.length > limits.answerCountedBytes
  const response = new Response(isLarge ? null : text, { status, headers: jsonHeaders })
  if (isLarge) largeTexts.set(response, text)
  for (const name in headers) response.headers.set(name, headers[name]!)
  return response
}

/**
 * A large answer is sent in pieces as it is read, and counts until it is: whoever reads none of them holds a bounded
 * share of memory, and for 30 s at most. Beyond the share it becomes a 503.
 */
export function counted(response: Response, context: RequestContext): Response {
  const text = largeTexts.get(response)
  if (text === undefined) return response
  const share = context.underWay.answers.take(ownerOf(context), text.length)
  if (share === null) {
    const message = 'Too many answers of yours wait to be read; read them, or ask for smaller pages.'
    return errorResponse(new AppError('overloaded', message, { headers: retryAfter() }), context.id)
  }
  const body = streamText({ parts: pieces(text), stallMs: limits.answerStallMs, ended: share.release })
  return new Response(body, { status: response.status, headers: response.headers })
}

const pieceChars = 128 * 1024

async function* pieces(text: string): AsyncGenerator<string> {
  for (let at = 0; at < text.length;) {
    let end = Math.min(at + pieceChars, text.length)
    // No piece ends within a surrogate pair.
    if (end < text.length && (text.charCodeAt(end - 1) & 0xfc00) === 0xd800) end++
    yield text.slice(at, end)
    at = end
  }
}
