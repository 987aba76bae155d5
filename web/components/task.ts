/** One user action that calls the server: never twice at once, with its busy state and error. */
import { useSignal, type Signal } from '@preact/signals'
import type { ApiError } from '../api/api.ts'
import { asApiError } from '../app/session.ts'

export interface Task {
  busy: Signal<boolean>
  problem: Signal<ApiError | null>
  /** Does nothing while a call is running. Resolves to true if the work succeeded. */
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
