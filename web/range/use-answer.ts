/** One question to the server that a panel or dialog asks for itself; the last answer stays while the next comes. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { ApiError } from '../api.ts'

export interface Answer<T> {
  found: T | null
  problem: ApiError | null
}

/** Asks anew when `question` changes. */
export function useAnswer<T>(question: string, ask: (signal: AbortSignal) => Promise<T>): Answer<T> {
  const answer = useSignal<Answer<T>>({ found: null, problem: null })
  useEffect(() => {
    const stop = new AbortController()
    ask(stop.signal).then(
      (found) => (answer.value = { found, problem: null }),
      (error: unknown) => {
        if (stop.signal.aborted) return
        if (!(error instanceof ApiError)) throw error
        answer.value = { ...answer.value, problem: error }
      },
    )
    return () => stop.abort()
  }, [question])
  return answer.value
}
