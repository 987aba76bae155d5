/**
 * Caches results of counting verbs until what they count changes. Several tabs and the parts of one page send the same
 * query. A result is never older than the last acknowledged change.
 */

interface Entry {
  version: number
  answer: Promise<unknown>
  rows: number // 0 until the result is there
}

const answersMax = 64
/** Rows of all results together, some 100 bytes each. A single larger result belongs to an export. */
const rowsMax = 150_000
const rowsOfOneMax = 25_000
const rowChars = 120 // per row of a result that is JSON text

export interface AnswerCache {
  /** The cached result of the query, or the one that `fetch` fetches. */
  of<T>(orgId: string, query: string, fetch: () => Promise<T>): Promise<T>
  /** Events were stored or deleted; null: of any organization. */
  changed(orgId: string | null): void
}

export function answerCache(): AnswerCache {
  const cache = new Map<string, Entry>() // least recently used first
  const versions = new Map<string, number>()
  let ofAll = 0
  const versionOf = (orgId: string): number => ofAll + (versions.get(orgId) ?? 0)

  return {
    of(orgId, query, fetch) {
      const key = `${orgId}\n${query}`
      const version = versionOf(orgId)
      const cachedEntry = cache.get(key)
      cache.delete(key)
      // A query sent before a change may be answered from before it, so a later caller gets a new result.
      const answer =
        cachedEntry?.version === version ? (cachedEntry.answer as ReturnType<typeof fetch>) : fetch()
      const rows = cachedEntry?.answer === answer ? cachedEntry.rows : 0
      const entry = { version, answer, rows }
      cache.set(key, entry)
      const forget = (): void => void (cache.get(key) === entry && cache.delete(key))
      answer.then((result) => {
        entry.rows = rowsOf(result)
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
