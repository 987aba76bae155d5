/**
 * One question to the server that a panel or dialog asks for itself. The last answer to this very question stays while
 * it is asked again, and is there at once when the page comes back; that to another question is never shown.
 */
import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { ApiError } from '../api/api.ts'
import type { Question } from './queries.ts'
import { recall, remember } from './query-cache.ts'

export interface Answer<T> {
  found: T | null
  problem: ApiError | null
}

/** After an answer it rests so many times as long as the asking took: an open page must not keep the appliance busy. */
const restTimes = 10

/**
 * Asks anew when `question` changes, which names what it asks, and rested when `moved` does (events came), at most once
 * in `restMsMin`.
 */
export function useAnswer<T>(
  { text: question, ask }: Question<T>,
  moved?: unknown,
  restMsMin = 0,
): Answer<T> {
  const answer = useSignal<Answer<T> & { question: string }>({ question: '', found: null, problem: null })
  const turns = useRef<Turns>({ wanted: 0, next: () => {} }).current
  const seen = useRef(moved)
  const drawn = useRef<T | null>(null)
  useEffect(() => {
    const stop = new AbortController()
    void follow(ask, stop.signal, turns, restMsMin, (told) => {
      const before = answer.peek().question === question ? answer.peek() : unanswered<T>(question)
      // What this panel shows counts: another one may have asked the same, and the answer be remembered meanwhile.
      if (told.found && before.problem === null && isSame(drawn.current, told.found)) return
      if (told.found) remember(question, told.found)
      answer.value = { ...before, ...told, question }
    })
    return () => stop.abort()
  }, [question])
  useEffect(() => {
    if (Object.is(seen.current, moved)) return
    seen.current = moved
    turns.wanted += 1
    turns.next()
  }, [moved])
  const shown = answer.value.question === question ? answer.value : unanswered<T>(question)
  drawn.current = shown.found
  return shown
}

/** The same again needs no drawing. */
const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

function unanswered<T>(question: string): Answer<T> {
  return { found: recall<T>(question), problem: null }
}

/** How often events came, and what ends the wait of the question that is asked now. */
export interface Turns {
  wanted: number
  next: () => void
}

/** Asks, rests, and waits for its next turn, until `stop`. A stopped question takes no turn of the one after it. */
export async function follow<T>(
  ask: (signal: AbortSignal) => Promise<T>,
  stop: AbortSignal,
  turns: Turns,
  restMsMin: number,
  tell: (found: Partial<Answer<T>>) => void,
): Promise<void> {
  while (!stop.aborted) {
    const startedMs = performance.now()
    const answered = turns.wanted
    try {
      const found = await ask(stop)
      if (stop.aborted) return
      tell({ found, problem: null })
    } catch (error) {
      if (stop.aborted) return
      if (!(error instanceof ApiError)) throw error
      tell({ problem: error })
    }
    const restMs = Math.max(restMsMin, restTimes * (performance.now() - startedMs))
    await new Promise((rested) => setTimeout(rested, restMs))
    if (stop.aborted) return
    if (turns.wanted === answered) await new Promise<void>((next) => (turns.next = next))
  }
}
