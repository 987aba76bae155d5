/**
 * Reads an HTTP response as forgivingly as other clients do. A receiver that answered has processed the message, and a
 * strange header must not send it again. So only a response without a status is an error.
 */
import { SendError, remote } from './sink.ts'

export interface HttpResponse {
  status: number
  /** In the order of the response, names in lower case. */
  headers: [name: string, value: string][]
  /** At most `bodyBytesMax` bytes, without the framing of chunks. */
  body: Buffer
}

export interface ResponseReader {
  /** Returns true when the rest does not matter. Throws a `SendError` when the response is not HTTP. */
  read(bytes: Uint8Array): boolean
  /** Null before the head is complete. */
  response(): HttpResponse | null
}

/** Of all heads of a response together. Headers after it are not read, and neither is the body. */
export const headBytesMax = 256 * 1024

/** Of a line that gives the size of a chunk. */
const chunkLineBytesMax = 4 * 1024

type Part = 'status line' | 'header' | 'chunk size' | 'chunk' | 'chunk end' | 'body' | 'nothing'

export function responseReader(bodyBytesMax: number): ResponseReader {
  const line = lineBuffer()
  const body: Uint8Array[] = []
  let part: Part = 'status line'
  let isHeadComplete = false
  let headBytes = 0
  let status = 0
  let headers: HttpResponse['headers'] = []
  let bodyBytes = 0
  let leftBytes = 0 // of the chunk, or of a body whose length was announced

  function readLine(text: string): void {
    if (part === 'status line') readStatusLine(text)
    else if (part === 'header') readHeaderLine(text)
    else if (part === 'chunk size') readChunkSize(text)
    else part = 'chunk size' // the line end behind a chunk
  }

  function readStatusLine(text: string): void {
    if (text === '') return // some servers send a line end too many behind the response before
    const match = /^HTTP\/\d(?:\.\d)?[ \t]+([1-9]\d\d)(?:[ \t]|$)/i.exec(text)
    if (match === null) throw new SendError(remote('bad_answer', 'the response is not HTTP'))
    status = Number(match[1])
    headers = []
    part = 'header'
  }

  function readHeaderLine(text: string): void {
    if (text === '') return endHead()
    const last = headers.at(-1)
    if (/^[ \t]/.test(text)) {
      if (last !== undefined) last[1] = `${last[1]} ${text.trim()}`.trim() // folded, obsolete since RFC 7230
      return
    }
    const colon = text.indexOf(':')
    if (colon > 0) headers.push([text.slice(0, colon).trim().toLowerCase(), text.slice(colon + 1).trim()])
  }

  function endHead(): void {
    const isInterim = status < 200 && status !== 101
    if (isInterim) {
      part = 'status line'
      return
    }
    isHeadComplete = true
    const length = /^\d{1,15}(?=$|\s*,)/.exec(headerOf(headers, 'content-length') ?? '')
    const hasNoBody = status === 101 || status === 204 || status === 304
    if (hasNoBody || bodyBytesMax === 0) part = 'nothing'
    else if (/\bchunked$/i.test(headerOf(headers, 'transfer-encoding') ?? '')) part = 'chunk size'
    else {
      leftBytes = length === null ? Infinity : Number(length[0])
      part = leftBytes === 0 ? 'nothing' : 'body'
    }
  }

  function readChunkSize(text: string): void {
    const size = /^[ \t]*([\da-f]{1,12})[ \t]*(?:;|$)/i.exec(text)
    leftBytes = size === null ? 0 : Number.parseInt(size[1]!, 16)
    part = leftBytes === 0 ? 'nothing' : 'chunk'
  }

  /** Returns how many of the bytes belong to the body. */
  function readBody(bytes: Uint8Array): number {
    const used = bytes.subarray(0, Math.min(leftBytes, bodyBytesMax - bodyBytes))
    body.push(used.slice())
    bodyBytes += used.length
    leftBytes -= used.length
    if (bodyBytes >= bodyBytesMax) part = 'nothing'
    else if (leftBytes === 0) part = part === 'chunk' ? 'chunk end' : 'nothing'
    return used.length
  }

  /** Returns how many of the bytes belong to the line. */
  function readPartOfLine(bytes: Uint8Array): number {
    const end = bytes.indexOf(lineFeed)
    const used = end === -1 ? bytes.length : end + 1
    if (isHeadComplete) {
      if (line.length() + used > chunkLineBytesMax) {
        part = 'nothing'
        return used
      }
    } else {
      headBytes += used
      if (headBytes > headBytesMax) {
        endLongHead()
        return used
      }
    }
    line.append(bytes.subarray(0, used))
    if (end !== -1) readLine(line.take())
    return used
  }

  function endLongHead(): void {
    if (part === 'status line') throw new SendError(remote('bad_answer', 'the response has no status'))
    isHeadComplete = true
    part = 'nothing'
  }

  return {
    read(bytes) {
      let offset = 0
      while (offset < bytes.length && part !== 'nothing') {
        const left = bytes.subarray(offset)
        offset += part === 'body' || part === 'chunk' ? readBody(left) : readPartOfLine(left)
      }
      return part === 'nothing'
    },
    response: () => (isHeadComplete ? { status, headers, body: Buffer.concat(body) } : null),
  }
}

/** The first value of a header. */
export function headerOf(headers: HttpResponse['headers'], name: string): string | null {
  return headers.find(([each]) => each === name)?.[1] ?? null
}

const lineFeed = 10

/** Collects the bytes of a line, however small the pieces in which they arrive. */
function lineBuffer() {
  let bytes = Buffer.alloc(256)
  let length = 0
  return {
    length: () => length,
    append(piece: Uint8Array): void {
      if (length + piece.length > bytes.length) {
        const larger = Buffer.alloc(2 * (length + piece.length))
        larger.set(bytes.subarray(0, length))
        bytes = larger
      }
      bytes.set(piece, length)
      length += piece.length
    },
    /** The line without its end. The buffer is empty afterwards. */
    take(): string {
      const text = bytes.toString('latin1', 0, length).replace(/\r?\n$/, '')
      length = 0
      return text
    },
  }
}
