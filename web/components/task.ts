/** One thing that a person asked for and that takes a moment: not twice at once, and its problem is kept to show. */
import { useSignal, type Signal } from '@preact/signals'
import type { ApiError } from '../api/api.ts'
import { asApiError } from '../app/session.ts'

export interface Task {
  busy: Signal<boolean>
  problem: Signal<ApiError | null>
  /** Does nothing while the last call still runs; resolves to whether it was done without a problem. */
  run(work: () => Promise<void>): Promise<boolean>
}

export function useTask(): Task {
  const busy = useSignal(false)
  const problem = useSignal<ApiError | null>(null)
  return {
    busy,
    problem,
    async run(work) {
      if (busy.value) return false
      busy.value = true
      problem.value = null
      try {
        await work()
        return true
      } catch (error) {
        problem.value = asApiError(error)
        return false
      } finally {
        busy.value = false
      }
    },
  }
}
