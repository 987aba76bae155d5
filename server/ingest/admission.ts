/** What every ingest endpoint asks of disk and queue before it takes anything, and does when a write fails. */
import { StoreError } from '../../db/contract/errors.ts'
import { AppError, retryAfter } from '../errors.ts'
import { requireBodyRoom } from '../http/body.ts'
import { limits } from '../limits.ts'
import type { Store } from '../../db/contract/store.ts'
import type { DiskWatch } from '../operations/health/disk.ts'

export interface AdmissionServices {
  store: Store
  disk: DiskWatch
  turns: Turns
  fail(reason: string, holdsOnlyCopy?: boolean): void
}

/**
 * 507 while the disk is full, 503 while more waits for the disk than may or too many bodies are under way: before
 * anything of the body is taken.
 */
export async function requireRoom(
  { disk, store, turns }: Pick<AdmissionServices, 'disk' | 'store' | 'turns'>,
  request: Request,
): Promise<void> {
  if (disk.full()) throw diskFull()
  const { queuedBytes, oldestMs } = store.events.pressure()
  if (queuedBytes + turns.waitingBytes() > limits.queueBytesMax || oldestMs > limits.queueAgeMsMax) {
    const message = 'More events wait for the disk than may; send this again later.'
    throw new AppError('overloaded', message, { headers: retryAfter() })
  }
  const declared = Number(request.headers.get('content-length') ?? 0)
  await requireBodyRoom(request, Math.min(declared || 0, limits.bodyBytesMax))
}

/** Waits for a write of ingest; a full disk is remembered, and after a failed device nothing more is acknowledged. */
export async function writeOrExplain<T>(
  services: Pick<AdmissionServices, 'disk' | 'fail'>,
  write: Promise<T>,
): Promise<T> {
  try {
    return await write
  } catch (thrown) {
    if (thrown instanceof StoreError && thrown.kind === 'storage_full') {
      services.disk.sawFull()
      throw diskFull()
    }
    // After a failed write or fsync nobody knows what the disk holds: acknowledge nothing more, restart from it.
    if (thrown instanceof StoreError && thrown.kind === 'io') services.fail(thrown.message)
    throw thrown
  }
}

function diskFull(): AppError {
  return new AppError(
    'storage_full',
    'There is no room left on the disk; nothing of this request was stored.',
    {
      hint: 'What is stored stays readable. Free some space; ingest comes back by itself.',
    },
  )
}

/** What takes longer to take apart than waiting for a turn costs. */
const largeBytes = 16 * 1024

export interface Turns {
  /** Fulfilled when it is this body's turn; at once for a small one. */
  take(bytes: number): Promise<void> | undefined
  /** Of the bodies whose turn has not come. */
  waitingBytes(): number
}

export function makeTurns(nextTurn: (go: () => void) => unknown = setImmediate): Turns {
  let waiting: { bytes: number; go: () => void }[] = []
  let taken = 0 // of those waiting, from the first
  let waitingBytes = 0
  let isRunning = false

  function next(): void {
    const one = waiting[taken]
    if (one === undefined) {
      waiting = []
      taken = 0
      isRunning = false
      return
    }
    taken++
    waitingBytes -= one.bytes
    nextTurn(next)
    one.go()
  }

  return {
    take(bytes) {
      if (bytes < largeBytes) return undefined
      if (!isRunning) {
        isRunning = true
        nextTurn(next)
        return undefined
      }
      waitingBytes += bytes
      return new Promise((go) => waiting.push({ bytes, go }))
    },
    waitingBytes: () => waitingBytes,
  }
}
