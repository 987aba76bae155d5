/** The differences between two JSON values, field by field, for people who compare versions. */
import { canonicalText } from '../../text/json-scan.ts'
import { limits } from '../../limits.ts'

export interface Difference {
  path: string // JSON Pointer
  change: 'added' | 'removed' | 'changed'
  before?: unknown
  after?: unknown
}

/** Sorted by field name; values too long to show are omitted. */
export function differences(before: unknown, after: unknown): Difference[] {
  const found: Difference[] = []
  compare(before, after, '', found)
  return found
}

function compare(before: unknown, after: unknown, path: string, found: Difference[]): void {
  if (found.length >= limits.differencesMax || canonicalText(before) === canonicalText(after)) return
  const [old, now] = [membersOf(before), membersOf(after)]
  if (old === null || now === null || Array.isArray(before) !== Array.isArray(after)) {
    found.push({ path, change: 'changed', ...shown('before', before), ...shown('after', after) })
    return
  }
  const names = [...new Set([...old.keys(), ...now.keys()])]
  for (const name of Array.isArray(before) ? names : names.sort()) {
    if (found.length >= limits.differencesMax) return
    const inner = `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
    if (!now.has(name)) found.push({ path: inner, change: 'removed', ...shown('before', old.get(name)) })
    else if (!old.has(name)) found.push({ path: inner, change: 'added', ...shown('after', now.get(name)) })
    else compare(old.get(name), now.get(name), inner, found)
  }
}

function membersOf(value: unknown): Map<string, unknown> | null {
  return typeof value === 'object' && value !== null ? new Map(Object.entries(value)) : null
}

function shown(side: 'before' | 'after', value: unknown): { before?: unknown; after?: unknown } {
  return JSON.stringify(value).length > limits.differenceCharsMax ? {} : { [side]: value }
}
