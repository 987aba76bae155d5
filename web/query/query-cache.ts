/** What was answered lately, by question, so that a page that was seen is there at once while it is asked anew. */
import { idleSignal } from '../api/api.ts'
import type { Question } from './queries.ts'
import { session } from '../app/session.ts'

const answers = new Map<string, unknown>() // the one given longest ago first
const answersMax = 64
const aheadMaxMs = 10_000

/** Another person or organization in the same tab sees nothing of the one before. */
function keyOf(question: string): string {
  const who = session.peek()
  return JSON.stringify([who?.account.id, who?.org.id, question])
}

/** `T` is what was remembered under this very question; every question names what it asks. */
export function recall<T>(question: string): T | null {
  return (answers.get(keyOf(question)) as T | undefined) ?? null
}

/** Asks before the page does, unless an answer is remembered. Rejects as `ask` does: the page asks again, and tells. */
export async function askAhead<T>({ text, ask }: Question<T>): Promise<T> {
  const key = keyOf(text)
  const known = recall<T>(text)
  if (known !== null) return known
  const answer = await ask(AbortSignal.any([idleSignal(), AbortSignal.timeout(aheadMaxMs)]))
  // Answered for whoever asked: another one may be signed in by now.
  if (key === keyOf(text)) remember(text, answer)
  return answer
}

export function remember(question: string, answer: unknown): void {
  const key = keyOf(question)
  answers.delete(key)
  answers.set(key, answer)
  for (const oldest of answers.keys()) if (answers.size > answersMax) answers.delete(oldest)
}
