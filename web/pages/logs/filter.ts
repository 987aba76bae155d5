/** The filters of the Logs page as they stand in the address, and the choices offered for them. */
import type { EventFilter } from '../../api.ts'

/** Filters that other pages lead here with; they show as chips that can be taken away. */
const others = [
  ...['agentClass', 'vendor', 'trust', 'tool', 'protocol', 'decision', 'subject', 'sessionId', 'siteId'],
  ...['since', 'until'],
]

export function filterOf(query: URLSearchParams): EventFilter {
  const all = (name: string): string[] => [...new Set(query.getAll(name).filter((value) => value !== ''))]
  const where = others.flatMap((name) => all(name).map((value) => ({ name, value })))
  return { types: all('type'), outcomes: all('outcome'), ...(where.length > 0 && { where }) }
}

export function isOpen(filter: EventFilter): boolean {
  return filter.types.length === 0 && filter.outcomes.length === 0 && filter.where === undefined
}

export interface Choice {
  value: string
  count: number | null
}

/** Every type that was seen and every prefix that covers more than one of them, with how many events each has. */
export function typeChoices(byType: { [type: string]: number }, chosen: string[]): Choice[] {
  const byPrefix = new Map<string, { types: number; count: number }>()
  for (const [type, count] of Object.entries(byType)) {
    const dot = type.indexOf('.')
    if (dot === -1) continue
    const prefix = `${type.slice(0, dot)}.*`
    const sum = byPrefix.get(prefix) ?? { types: 0, count: 0 }
    byPrefix.set(prefix, { types: sum.types + 1, count: sum.count + count })
  }
  const choices: Choice[] = Object.entries(byType).map(([value, count]) => ({ value, count }))
  for (const [value, sum] of byPrefix) if (sum.types > 1) choices.push({ value, count: sum.count })
  for (const value of chosen) {
    if (!choices.some((choice) => choice.value === value)) choices.push({ value, count: null })
  }
  // A prefix sorts before what it covers: "*" comes before every letter.
  return choices.sort((a, b) => (a.value < b.value ? -1 : 1))
}

const knownOutcomes = ['success', 'blocked', 'error']

export function outcomeChoices(seen: Iterable<string>, chosen: string[]): Choice[] {
  const values = new Set([...knownOutcomes, ...[...seen].sort(), ...chosen])
  return [...values].map((value) => ({ value, count: null }))
}

/** What the server takes as a type filter: a type, or a prefix with `.*`. */
export function isTypeFilter(text: string): boolean {
  return text.length <= 66 && /^[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)*(\.\*)?$/.test(text)
}
