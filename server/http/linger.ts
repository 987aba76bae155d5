/**
 * Closes connections in stages (RFC 9112 §9.6). A connection that is closed while its client still sends is reset, and
 * the client sees a broken pipe instead of the response. So what it sends is read and discarded first, for a bounded
 * time. Connections that stay open need none of this: the parser discards the rest of a body.
 */
import { limits } from '../limits.ts'
import { free } from './inflate.ts'

let lingering = 0

/** Resolves when the body that nobody read has arrived, or its time is over; undefined (at once) when none has to. */
export function lingerOf(request: Request, response: Response): Promise<unknown> | undefined {
  if (request.bodyUsed || !hasBody(request.headers)) return undefined
  if (!isClosing(request.headers) && !isClosing(response.headers)) return undefined
  const reader = request.body?.getReader()
  return reader === undefined ? undefined : discardRest(reader, limits.lingerMs)
}

/** Reads and discards a body. False when it did not end in time, or when too many are being discarded already. */
export async function discardRest(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  ms: number,
): Promise<boolean> {
  if (lingering >= limits.lingeringMax) return false
  lingering++
  const late = Promise.withResolvers<'late'>()
  const timer = setTimeout(() => late.resolve('late'), ms)
  try {
    for (;;) {
      const next = await Promise.race([reader.read().catch(() => null), late.promise])
      if (next === null || next === 'late') return false
      if (next.done) return true
      free(next.value)
    }
  } finally {
    clearTimeout(timer)
    lingering--
  }
}

function hasBody(headers: Headers): boolean {
  const length = headers.get('content-length')
  return length === null ? headers.has('transfer-encoding') : length !== '0'
}

export function isClosing(headers: Headers): boolean {
  const connection = headers.get('connection')
  return connection !== null && /(?:^|,)\s*close\s*(?:,|$)/i.test(connection)
}
