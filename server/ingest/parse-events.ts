/** Parses a JSON ingest body to its list of events, without letting deep nesting or one giant event hold the thread. */
import { AppError } from '../errors.ts'
import { parseJson } from '../http/body.ts'
import { limits } from '../limits.ts'
import { type Outline, outlineBody } from './outline.ts'
import { hasMoreOpeners, skipSpace } from '../text/json-scan.ts'

export interface ParsedEvents {
  events: unknown[] // 1 to 1,000; null where the outline says that an event is over a limit
  outline: Outline | null // when it was needed to parse
}

/** Bodies from here on are looked at before they are parsed: below, even nothing but brackets parses in 2 ms. */
const watchedLength = 8 * 1024

/** Ordinary events have a bracket in 100 characters; parsing costs 0.2 µs a bracket, and more when they nest. */
const charsPerOpenerMin = 32

/** The events of a body. Throws 400 when it is no list of events or the list is empty, 413 beyond 1,000. */
export function parseEvents(text: string): ParsedEvents {
  const isDense = text.length > watchedLength && hasMoreOpeners(text, text.length / charsPerOpenerMin)
  if (isDense && text[skipSpace(text, 0)] !== '{') throw notObject()
  const outline = isDense ? outlineBody(text) : null
  if (isDense && outline === null) throw new AppError('invalid_json', 'The body is not valid JSON.')
  if (outline !== null && outline.events.length > limits.eventsPerRequestMax) throw tooManyEvents()
  const body = parseJson(outline === null ? text : withoutOver(text, outline))
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw notObject()
  }
  const events = Object.hasOwn(body, 'events') ? body['events'] : undefined
  if (events === undefined) throw notEvents('required', 'is required')
  if (!Array.isArray(events)) throw notEvents('wrong_type', 'must be an array')
  if (events.length === 0) throw notEvents('required', 'must hold at least one event')
  if (events.length > limits.eventsPerRequestMax) throw tooManyEvents()
  return { events, outline }
}

const hint = `Send {"events": [ … ]} with 1 to ${limits.eventsPerRequestMax} events.`

function notObject(): AppError {
  return new AppError('invalid_body', 'The body must be a JSON object.', { hint })
}

function notEvents(code: string, message: string): AppError {
  const issues = [{ path: 'events', code, message }]
  return new AppError('invalid_body', `The member "events" of the body ${message}.`, { hint, issues })
}

export function tooManyEvents(): AppError {
  const message = `A request may carry at most ${limits.eventsPerRequestMax} events.`
  return new AppError('payload_too_large', message, { hint: 'Send them in several requests.' })
}

/** The text with `null` in place of each value that is refused unseen for its depth or size. */
function withoutOver(text: string, { over }: Outline): string {
  if (over.length === 0) return text
  const parts: string[] = []
  let at = 0
  for (const { start, end } of over) {
    parts.push(text.slice(at, start))
    at = end
  }
  return parts.join('null') + 'null' + text.slice(at)
}
