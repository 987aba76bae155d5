/** Admission control of ingest: refuses requests before their body is read, queues parsing, handles failed writes. */
import { StoreError } from '../../db/contract/errors.ts'
import { AppError, retryAfter } from '../errors.ts'
import { requireBodyCapacity } from '../http/body.ts'
import { limits } from '../limits.ts'
import type { Store } from '../../db/contract/store.ts'
import type { DiskWatch } from '../system/disk.ts'

export interface AdmissionServices {
  store: Store
  disk: DiskWatch
  parseQueue: ParseQueue
  fail(reason: string, holdsOnlyCopy?: boolean): void
}

/**
 * Before the body is read: throws 507 while the disk is full, and 503 when too many bytes are queued; undefined (at
 * once) when the body fits among those in flight, otherwise rejects with 503.
 */
export function requireAdmission(
  { disk, store, parseQueue }: Pick<AdmissionServices, 'disk' | 'store' | 'parseQueue'>,
  request: Request,
  bytesMax: number = limits.bodyBytesMax,
): Promise<void> | undefined {
  const { queuedBytes, oldestMs, full } = store.events.pressure()
  if (full || disk.full()) throw diskFull()
  if (queuedBytes + parseQueue.waitingBytes() > limits.queueBytesMax || oldestMs > limits.queueAgeMsMax) {
    const message = 'Too many events are waiting to be written. Try again later.'
    throw new AppError('overloaded', message, { headers: retryAfter() })
  }
  const declared = Number(request.headers.get('content-length') ?? 0)
  return requireBodyCapacity(request, Math.min(declared || 0, bytesMax), bytesMax)
}

/** Waits for an ingest write. */
export async function writeOrExplain<T>(
  services: Pick<AdmissionServices, 'disk' | 'fail'>,
  write: Promise<T>,
): Promise<T> {
  try {
    return await write
  } catch (thrown) {
    throw explained(services, thrown)
  }
}

/** The sender's error for a failed write. A full disk refuses later requests at once; an I/O error ends the process. */
export function explained(services: Pick<AdmissionServices, 'disk' | 'fail'>, thrown: unknown): unknown {
  if (thrown instanceof StoreError && thrown.kind === 'storage_full') {
    services.disk.sawFull()
    return diskFull()
  }
  // After a failed write or fsync the contents of the disk are unknown: acknowledge nothing more and restart.
  if (thrown instanceof StoreError && thrown.kind === 'io') services.fail(thrown.message)
  return thrown
}

function diskFull(): AppError {
  return new AppError('storage_full', 'The disk is full. Nothing in this request was stored.', {
    hint: 'Stored events stay readable. Free disk space; ingest resumes automatically.',
  })
}

/** Parsing a smaller body costs less than waiting for the next tick. */
const largeBytes = 16 * 1024

/** Parses at most one large body per event-loop tick, so small requests do not wait behind large ones. */
export interface ParseQueue {
  /** Resolves when this body may be parsed; undefined (at once) for a small one. */
  wait(bytes: number): Promise<void> | undefined
  /** Bytes of the bodies that are still queued. */
  waitingBytes(): number
}

export function makeParseQueue(nextTick: (go: () => void) => unknown = setImmediate): ParseQueue {
  let waiting: { bytes: number; go: () => void }[] = []
  let started = 0 // from the front of `waiting`
  let waitingBytes = 0
  let isRunning = false

  function next(): void {
    const entry = waiting[started]
    if (entry === undefined) {
      waiting = []
      started = 0
      isRunning = false
      return
    }
    started++
    waitingBytes -= entry.bytes
    nextTick(next)
    entry.go()
  }

  return {
    wait(bytes) {
      if (bytes < largeBytes) return undefined
      if (!isRunning) {
        isRunning = true
        nextTick(next)
        return undefined
      }
      waitingBytes += bytes
      return new Promise((go) => waiting.push({ bytes, go }))
    },
    waitingBytes: () => waitingBytes,
  }
}
