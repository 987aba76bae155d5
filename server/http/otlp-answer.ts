/** The answers of OpenTelemetry routes: in the encoding of the request, errors as `google.rpc.Status`. */
import { isOtlp, pathOf } from './request.ts'
import { retryAfter, type AppError, type ErrorCode } from '../errors.ts'

export type OtlpEncoding = 'protobuf' | 'json'

const mediaTypes: { readonly [encoding in OtlpEncoding]: string } = {
  protobuf: 'application/x-protobuf',
  json: 'application/json',
}

/** Codes of `google.rpc.Code`. */
const codes: { readonly [code in ErrorCode]?: number } = {
  unauthorized: 16,
  forbidden: 7,
  key_exposed: 7,
  not_found: 5,
  rate_limited: 8,
  payload_too_large: 8,
  internal_error: 13,
  overloaded: 14,
  shutting_down: 14,
  not_ready: 14,
  unavailable: 14,
  storage_full: 14,
}
const invalidArgument = 3

/** null for other requests. Exporters retry 429, 502, 503 and 504 only, so a full disk is 503 here. */
export function otlpError(error: AppError, request: Request): Response | null {
  if (!isOtlp(request.method, pathOf(request))) return null
  const isFull = error.code === 'storage_full'
  const { hint, headers } = error.details
  const message = hint === undefined ? error.message : `${error.message} ${hint}`
  const code = codes[error.code] ?? invalidArgument
  const type = request.headers.get('content-type') ?? ''
  const encoding: OtlpEncoding = /protobuf|grpc/i.test(type) ? 'protobuf' : 'json'
  const body =
    encoding === 'json'
      ? JSON.stringify({ code, message })
      : protobuf([numberField(1, code), textField(2, message)])
  return new Response(body, {
    status: isFull ? 503 : error.status,
    headers: { ...(isFull ? retryAfter() : {}), ...headers, ...common(encoding) },
  })
}

/** A 200. `rejected` names its field in JSON; with a count of 0 the request was a whole success. */
export function otlpAnswer(
  encoding: OtlpEncoding,
  rejected: string,
  count: number,
  message: string,
): Response {
  const headers = common(encoding)
  if (encoding === 'json') {
    // 64-bit numbers are text in the JSON form of protobuf.
    const partialSuccess = { [rejected]: String(count), errorMessage: message }
    return new Response(JSON.stringify(count === 0 ? {} : { partialSuccess }), { headers })
  }
  const partial = protobuf([numberField(1, count), textField(2, message)])
  return new Response(count === 0 ? new Uint8Array() : protobuf([bytesField(1, partial)]), { headers })
}

/** A 200 that refuses nothing and has a message, which OTLP calls a warning. */
export function otlpWarning(encoding: OtlpEncoding, message: string): Response {
  const headers = common(encoding)
  const body =
    encoding === 'json'
      ? JSON.stringify({ partialSuccess: { errorMessage: message } })
      : protobuf([bytesField(1, textField(2, message))])
  return new Response(body, { headers })
}

function common(encoding: OtlpEncoding): { [name: string]: string } {
  return { 'content-type': mediaTypes[encoding], 'cache-control': 'no-store' }
}

function protobuf(fields: Uint8Array[]): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.concat(fields))
}

function numberField(field: number, value: number): Uint8Array {
  return Uint8Array.from([field * 8, ...varint(value)])
}

function textField(field: number, text: string): Uint8Array {
  return bytesField(field, Buffer.from(text))
}

function bytesField(field: number, bytes: Uint8Array): Uint8Array {
  return Buffer.concat([Uint8Array.from([field * 8 + 2, ...varint(bytes.length)]), bytes])
}

function varint(value: number): number[] {
  const bytes: number[] = []
  for (let remainder = value; ; remainder = Math.floor(remainder / 128)) {
    if (remainder < 128) return [...bytes, remainder]
    bytes.push((remainder % 128) + 128)
  }
}
