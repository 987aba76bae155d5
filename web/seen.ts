/** What was answered lately, by question, so that a page that was seen is there at once while it is asked anew. */
import { session } from './session.ts'

const answers = new Map<string, unknown>() // the one given longest ago first
const answersMax = 64

/** Another person or organization in the same tab sees nothing of the one before. */
function keyOf(question: string): string {
  const who = session.peek()
  return JSON.stringify([who?.account.id, who?.org.id, question])
}

/** `T` is what was remembered under this very question; every question names what it asks. */
export function recall<T>(question: string): T | null {
  return (answers.get(keyOf(question)) as T | undefined) ?? null
}

export function remember(question: string, answer: unknown): void {
  const key = keyOf(question)
  answers.delete(key)
  answers.set(key, answer)
  for (const oldest of answers.keys()) if (answers.size > answersMax) answers.delete(oldest)
}
