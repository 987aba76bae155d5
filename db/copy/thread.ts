/** The thread that copies one database into another. It alone opens both engines. */
import { StoreError } from '../contract/errors.ts'
import { openServerSource, openServerTarget, reopenServer } from '../postgres/copy.ts'
import { beginCopy, copyAll, keysOf, type Copying } from '../sql/copy/copy.ts'
import { endThread, serve } from '../sql/threads/port.ts'
import { openFolderSource, openFolderTarget, reopenFolder } from '../sqlite/copy.ts'
import { storeError } from '../sqlite/file/failure.ts'
import type { CopyRequest, CopyStep, CopyVerdict } from '../contract/copy.ts'
import type { Sliced } from '../sql/slices.ts'

export interface CopyOpening {
  request: CopyRequest
  fromShared: boolean
  toShared: boolean
}

/** So that its caller can report and stop. */
const stepMsDefault = 200

interface Running {
  copying: Copying
  steps: Sliced<CopyVerdict | null>
}

let running: Running | null = null

serve(storeError, (verb, command) => {
  if (verb === 'open') return open(command as CopyOpening)
  if (verb === 'reopen') {
    const { location, isShared } = command as { location: string; isShared: boolean }
    return isShared ? reopenServer(location) : reopenFolder(location)
  }
  if (verb === 'close') {
    const { source, target } = running?.copying ?? {}
    running = null
    endThread()
    try {
      source?.close()
    } finally {
      target?.close()
    }
    return null
  }
  if (verb !== 'step' || running === null) throw new StoreError('closed', 'the copy is closed')
  return step(running)
})

function open({ request, fromShared, toShared }: CopyOpening) {
  const { from, to, now } = request
  const source = fromShared ? openServerSource(from.location, now) : openFolderSource(from.location)
  try {
    const target = toShared ? openServerTarget(to.location, now) : openFolderTarget(to.location, now)
    try {
      const copying = beginCopy(source, target, request)
      running = { copying, steps: copyAll(copying) }
      return { ...keysOf(source), isResumed: copying.isResumed }
    } catch (error) {
      target.close()
      throw error
    }
  } catch (error) {
    source.close()
    throw error
  }
}

function step({ copying, steps }: Running): CopyStep {
  const { report, request } = copying
  const endMs = performance.now() + (request.stepMs ?? stepMsDefault)
  do {
    const slice = steps.next()
    if (slice.done)
      return { ...report, phase: slice.value === null ? 'caught_up' : 'done', verdict: slice.value }
  } while (performance.now() < endMs && report.phase !== 'wait')
  return { ...report }
}
