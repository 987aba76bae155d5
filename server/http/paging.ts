/** Reads `limit` and the opaque `cursor` of lists that go on, and seals the next cursor. */
import { invalidQuery, type Query } from './query.ts'
import type { Seal } from './cursor-cipher.ts'

/** A positive whole number; above `max` it means `max`. Throws 400 `invalid_query`. */
export function readLimit(query: Query, standard: number, max: number): number {
  const text = query.one('limit')
  if (text === undefined) return standard
  if (!/^[0-9]+$/.test(text) || Number(text) < 1) {
    throw invalidQuery('limit', `limit must be a whole number from 1; above ${max} it means ${max}`)
  }
  return Math.min(Number(text), max)
}

/**
 * What a cursor holds, null without one. It belongs to one list, organization and question; the question may be left
 * out beside it. Throws 400 `invalid_query` for any other.
 */
export function readCursor<Asked, Position>(
  seal: Seal,
  list: string,
  orgId: string,
  query: Query,
  asked: Asked | null,
): { asked: Asked; position: Position } | null {
  const text = query.one('cursor')
  if (text === undefined) return null
  const opened = seal.open(list, text) as [string, Asked, Position] | null
  if (!opened || opened[0] !== orgId) throw invalidQuery('cursor', 'This cursor is not one of ours.')
  if (asked !== null && JSON.stringify(asked) !== JSON.stringify(opened[1])) {
    throw invalidQuery('cursor', 'This cursor belongs to a list with other filters; send it alone.')
  }
  return { asked: opened[1], position: opened[2] }
}

export function closeCursor(
  seal: Seal,
  list: string,
  orgId: string,
  asked: unknown,
  position: unknown,
): string {
  return seal.close(list, [orgId, asked, position])
}
