/**
 * Answers of counting verbs, kept as long as nothing that they count has changed. Several tabs and the parts of one
 * page ask the same; in a quiet hour a page is there at once. An answer is never older than the last acknowledged
 * change.
 */

interface Entry {
  version: number
  answer: Promise<unknown>
  rows: number // 0 until it is there
}

const answersMax = 64
/** Of all answers together, some 100 bytes each; a single larger one is for an export. */
const rowsMax = 150_000
const rowsOfOneMax = 25_000
const rowChars = 120 // of a row that is kept as JSON text

export interface AnswerCache {
  /** The kept answer to the question, or the one that `ask` gives now. */
  of<T>(orgId: string, question: string, ask: () => Promise<T>): Promise<T>
  /** Something was stored or taken away; null: of whatever organization. */
  changed(orgId: string | null): void
}

export function answerCache(): AnswerCache {
  const cache = new Map<string, Entry>() // the one asked for longest ago first
  const versions = new Map<string, number>()
  let ofAll = 0
  const versionOf = (orgId: string): number => ofAll + (versions.get(orgId) ?? 0)

  return {
    of(orgId, question, ask) {
      const key = `${orgId}\n${question}`
      const version = versionOf(orgId)
      const known = cache.get(key)
      cache.delete(key)
      // A question asked before a change may be answered from before it: whoever asks after it gets a new answer.
      const answer = known?.version === version ? (known.answer as ReturnType<typeof ask>) : ask()
      const rows = known?.answer === answer ? known.rows : 0
      const entry = { version, answer, rows }
      cache.set(key, entry)
      const forget = (): void => void (cache.get(key) === entry && cache.delete(key))
      answer.then((found) => {
        entry.rows = rowsOf(found)
        if (entry.rows > rowsOfOneMax) forget()
        shrink(cache)
      }, forget)
      return answer
    },
    changed(orgId) {
      if (orgId === null) ofAll += 1
      else versions.set(orgId, (versions.get(orgId) ?? 0) + 1)
    },
  }
}

function shrink(cache: Map<string, Entry>): void {
  let rows = 0
  for (const entry of cache.values()) rows += entry.rows
  for (const [key, entry] of cache) {
    if (cache.size <= answersMax && rows <= rowsMax) return
    rows -= entry.rows
    cache.delete(key)
  }
}

function rowsOf(answer: unknown): number {
  if (typeof answer !== 'object' || answer === null) return 0
  if ('rowsJson' in answer && typeof answer.rowsJson === 'string')
    return Math.ceil(answer.rowsJson.length / rowChars)
  return 'rows' in answer && Array.isArray(answer.rows) ? answer.rows.length : 0
}
