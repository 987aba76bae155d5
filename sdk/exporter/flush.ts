/** Waits for what is queued now to leave the queue, with an end. */
import type { Delivery } from './delivery.ts'

/** True when it all left in time; false at the deadline, or at once while the appliance refuses everything. */
export function flushWithin(state: Delivery, run: () => Promise<void>, timeoutMs: number): Promise<boolean> {
  const { queue } = state
  const target = state.settled + queue.count
  if (queue.count === 0) return Promise.resolve(true)
  if (state.refusal !== null) return Promise.resolve(false)
  state.owed = queue.count
  if (state.waiting?.isAsked === false) state.waiting.pause.cut() // a pause the appliance asked for is kept
  return new Promise((resolve) => {
    const end = (isEmpty: boolean): void => {
      clearTimeout(timer)
      state.onSettled.delete(check)
      resolve(isEmpty)
    }
    const check = (): void => {
      if (state.settled >= target) end(true)
      else if (state.refusal !== null) end(false)
    }
    const timer = setTimeout(() => end(false), timeoutMs) // keeps the process alive, as a flush should
    state.onSettled.add(check)
    void run()
  })
}
