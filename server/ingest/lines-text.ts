/** Decodes an NDJSON body so that bytes that are not UTF-8 cost their own line alone (contract §4). */
import { isUtf8 } from 'node:buffer'
import { decodeBody } from '../http/body.ts'
import { limits } from '../limits.ts'

/** Stands in a line that was not UTF-8: half of a surrogate pair, which no decoded text can hold. */
const mark = '\udfff'

const feed = 0x0a
const blank = new Set([0x20, 0x09, 0x0d, feed])
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])

/** The text of the body; a line that was not UTF-8 is no well-formed text in it. */
export function linesText(bytes: Uint8Array): string {
  return isUtf8(bytes)
    ? decodeBody(bytes)
    : decodeLines(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length))
}

/** Line by line, and never more lines than it takes to see that there are too many. */
function decodeLines(bytes: Buffer): string {
  const lines: string[] = []
  let at = bytes.subarray(0, 3).equals(byteOrderMark) ? 3 : 0
  while (lines.length <= limits.eventsPerRequestMax) {
    while (at < bytes.length && blank.has(bytes[at]!)) at++
    if (at === bytes.length) break
    const found = bytes.indexOf(feed, at)
    const end = found < 0 ? bytes.length : found
    const line = bytes.subarray(at, end)
    lines.push(isUtf8(line) ? line.toString() : `${line.toString()}${mark}`)
    at = end
  }
  return lines.join('\n')
}
