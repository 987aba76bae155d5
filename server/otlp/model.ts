/** The part of OTLP that the receiver reads, the same for protobuf and JSON, and the forms of its values. */
import { AppError } from '../errors.ts'

/**
 * A value as stored in an event. As in the JSON form of OTLP, bytes are base64 text. Integers beyond 2^53 and NaN or
 * infinite doubles are text too, because no JSON number can hold them.
 */
export type AttributeValue =
  string | number | boolean | null | AttributeValue[] | { [name: string]: AttributeValue }

export interface Attributes {
  values: Map<string, AttributeValue>
  dropped: number // by the sender, or beyond a limit here
}

/** The resource and the instrumentation scope of an item. */
export interface Origin {
  resource: Attributes
  scope: string
}

/** A time in nanoseconds, split because no double can hold it. */
export interface Instant {
  ms: number // since 1970
  ns: number // 0 to 999,999 of the next millisecond
}

export interface SpanEvent {
  time: Instant | null
  name: string
  attributes: Attributes
}

/** Ids are lower-case hex digits, '' when absent; their length is not checked. */
export interface Span {
  origin: Origin
  traceId: string
  spanId: string
  parentSpanId: string
  name: string
  kind: number
  start: Instant | null
  end: Instant | null
  attributes: Attributes
  events: SpanEvent[]
  status: number // 2: error
  message: string
}

export interface LogRecord {
  origin: Origin
  traceId: string
  spanId: string
  time: Instant | null
  observed: Instant | null
  name: string
  body: AttributeValue
  attributes: Attributes
}

/** An item beyond a limit or with a value of a wrong type. It counts as refused; the others are stored. */
export interface Refused {
  isRefused: true
  path: string // of the field; '' is the item itself
  message: string
}

export function refusedItem(message: string, path = ''): Refused {
  return { isRefused: true, path, message }
}

/**
 * A request as items, one after the other. Null after some work that gave no item, so that the reader can let others
 * run. Throws 400 when the request is malformed, 413 when it has more parts than `partsMax`.
 */
export type Items<Item> = Generator<Item | Refused | null, void, undefined>

export const itemBytesMax = 4 * 1024 * 1024
/** Fields of an item with all that is in it: a span of 1,000 attributes and 100 events with ten each has 8,000. */
export const itemFieldsMax = 50_000
/** Of the brackets of an item in JSON. Values nest a quarter as deep; `valueDepthMax` levels of them are stored. */
export const itemDepthMax = 1_000
/** Of a resource or a scope, because each of its items is stored with it. */
export const originBytesMax = 64 * 1024
/** Resources, scopes and items of a request. Exporters send 512 items, collectors 8,192. */
export const partsMax = 250_000

export const tooLarge = refusedItem(`must have at most ${itemBytesMax} bytes`)
export const tooManyFields = refusedItem(`must have at most ${itemFieldsMax} fields`)
export const tooDeep = refusedItem(`must not be nested deeper than ${itemDepthMax} levels`)
export const originTooLarge = refusedItem(
  `must have a resource and a scope of at most ${originBytesMax} bytes and ${itemDepthMax} levels`,
)

export function isRefused(item: unknown): item is Refused {
  return typeof item === 'object' && item !== null && 'isRefused' in item
}

/** Counts a resource, a scope or an item; throws 413 above the limit. */
export function partCounter(): () => void {
  let parts = 0
  return () => {
    if (++parts > partsMax)
      throw new AppError(
        'payload_too_large',
        `The body has more than ${partsMax} resources, scopes and items. Nothing in it was stored.`,
        { hint: 'Send it in several requests.' },
      )
  }
}

/** Deeper values count as dropped. An event may nest 32 levels and has four around a value. */
export const valueDepthMax = 16
const attributesMax = 1_000
export const spanEventsMax = 100

export function noAttributes(): Attributes {
  return { values: new Map(), dropped: 0 }
}

/** Adds one attribute; the last of a name wins. `undefined` is a value beyond a limit. */
export function addAttribute(to: Attributes, name: string, value: AttributeValue | undefined): void {
  if (value === undefined || (to.values.size >= attributesMax && !to.values.has(name))) to.dropped++
  else to.values.set(name, value)
}

/** The instant of a 64-bit count of nanoseconds as two halves; null for 0, which means unknown. */
export function instantOf(high: number, low: number): Instant | null {
  if (high === 0 && low === 0) return null
  // 2^32 = 4,294 * 1,000,000 + 967,296. Every product stays below 2^53.
  const remainder = high * 967_296 + low
  return { ms: high * 4_294 + Math.floor(remainder / 1_000_000), ns: remainder % 1_000_000 }
}

/** NUL and unpaired surrogates cannot be stored. */
export function storable(text: string): string {
  const wellFormed = text.isWellFormed() ? text : text.toWellFormed()
  return wellFormed.includes('\0') ? wellFormed.replaceAll('\0', '\ufffd') : wellFormed
}

export function doubleValue(value: number): AttributeValue {
  return Number.isFinite(value) ? value : String(value)
}

export function malformed(problem: string): AppError {
  return new AppError('invalid_body', `The body is not a valid OTLP request: ${problem}.`)
}
