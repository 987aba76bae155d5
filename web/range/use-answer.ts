/**
 * One question to the server that a panel or dialog asks for itself. The last answer to this very question stays while
 * it is asked again, and is there at once when the page comes back; that to another question is never shown.
 */
import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { ApiError } from '../api.ts'
import type { Question } from './questions.ts'
import { recall, remember } from '../seen.ts'

export interface Answer<T> {
  found: T | null
  problem: ApiError | null
}

/** After an answer it rests so many times as long as the asking took: an open page must not keep the appliance busy. */
const restTimes = 10

/** Asks anew when `question` changes, which names what it asks, and rested when `moved` does (events came). */
export function useAnswer<T>({ text: question, ask }: Question<T>, moved?: unknown): Answer<T> {
  const answer = useSignal<Answer<T> & { question: string }>({ question: '', found: null, problem: null })
  const wanted = useRef(0)
  const turn = useRef<() => void>(() => {})
  const seen = useRef(moved)
  useEffect(() => {
    const stop = new AbortController()
    void follow(ask, stop.signal, wanted, turn, (told) => {
      const before = answer.peek().question === question ? answer.peek() : unanswered<T>(question)
      if (told.found && before.problem === null && isSame(before.found, told.found)) return
      if (told.found) remember(question, told.found)
      answer.value = { ...before, ...told, question }
    })
    return () => stop.abort()
  }, [question])
  useEffect(() => {
    if (Object.is(seen.current, moved)) return
    seen.current = moved
    wanted.current += 1
    turn.current()
  }, [moved])
  return answer.value.question === question ? answer.value : unanswered<T>(question)
}

/** The same again needs no drawing. */
const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

function unanswered<T>(question: string): Answer<T> {
  return { found: recall<T>(question), problem: null }
}

/** Asks, rests, and waits for its next turn, until `stop`. */
async function follow<T>(
  ask: (signal: AbortSignal) => Promise<T>,
  stop: AbortSignal,
  wanted: { current: number },
  turn: { current: () => void },
  tell: (found: Partial<Answer<T>>) => void,
): Promise<void> {
  while (!stop.aborted) {
    const startedMs = performance.now()
    const answered = wanted.current
    try {
      const found = await ask(stop)
      if (stop.aborted) return
      tell({ found, problem: null })
    } catch (error) {
      if (stop.aborted) return
      if (!(error instanceof ApiError)) throw error
      tell({ problem: error })
    }
    const restMs = restTimes * (performance.now() - startedMs)
    await new Promise((rested) => setTimeout(rested, restMs))
    if (wanted.current === answered) await new Promise<void>((next) => (turn.current = next))
  }
}
