/** Writes log text in the background: what its reader does not take in time is dropped and counted, not waited for. */
import { constants, fstatSync, openSync, write } from 'node:fs'

export interface LogSink {
  write(line: string): void
  /** Lines dropped since the last call. */
  takeDropped(): number
  flush(timeoutMs: number): Promise<void>
}

const pendingBytesMax = 1024 * 1024
const chunkBytesMax = 64 * 1024
const retryMs = 20

/** `fd` is standard error unless a test says otherwise. */
export function openLogSink(fd = nonBlocking(2), bytesMax = pendingBytesMax): LogSink {
  const lines: Buffer[] = []
  let pendingBytes = 0
  let dropped = 0
  let writing = false
  let broken = false

  function next(): void {
    if (lines.length === 0 || broken) {
      writing = false
      return
    }
    writing = true
    const chunk = takeChunk(lines)
    writeFrom(chunk, 0)
  }

  function writeFrom(chunk: Buffer, from: number): void {
    write(fd, chunk, from, chunk.length - from, null, (error, written) => {
      if (error && error.code !== 'EAGAIN' && error.code !== 'EINTR') {
        // The reader is gone for good (EPIPE) or the device failed: serving goes on without a log.
        broken = true
        lines.length = 0
        pendingBytes = 0
      } else {
        const done = error ? 0 : written
        pendingBytes -= done
        if (from + done < chunk.length)
          return void setTimeout(writeFrom, error ? retryMs : 0, chunk, from + done)
      }
      next()
    })
  }

  return {
    write(line) {
      if (broken) return
      const bytes = Buffer.from(line)
      if (pendingBytes + bytes.length > bytesMax) {
        dropped++
        return
      }
      lines.push(bytes)
      pendingBytes += bytes.length
      if (!writing) next()
    },
    takeDropped() {
      const roomAgain = pendingBytes < bytesMax / 2
      if (dropped === 0 || !roomAgain) return 0
      const count = dropped
      dropped = 0
      return count
    },
    async flush(timeoutMs) {
      const deadlineMs = performance.now() + timeoutMs
      while (pendingBytes > 0 && performance.now() < deadlineMs) await Bun.sleep(5)
    },
  }
}

/** The next lines as one buffer: few large writes instead of one for each line. */
function takeChunk(lines: Buffer[]): Buffer {
  let bytes = 0
  let count = 0
  for (const line of lines) {
    if (count > 0 && bytes + line.length > chunkBytesMax) break
    bytes += line.length
    count++
  }
  return Buffer.concat(lines.splice(0, count))
}

/**
 * A pipe whose reader sleeps would hold one thread of the small pool that also reads files and hashes passwords.
 * Opened anew it gets a non-blocking mode of its own, without touching the mode others see on theirs.
 */
function nonBlocking(fd: number): number {
  try {
    if (fstatSync(fd).isFIFO())
      return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK)
  } catch {
    // No /proc, or a pipe of another user: the ordinary descriptor works too, only less gently.
  }
  return fd
}
