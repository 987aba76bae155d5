/** Turns an event filter into SQL conditions with bound values; no value ever becomes part of the statement's text. */
import type { EventFilter } from '../../store.ts'

export interface Condition {
  sql: string // '' or ' AND …'
  values: (string | number)[]
}

const columnByMember = {
  outcomes: 'outcome',
  classes: 'class',
  vendors: 'vendor',
  trusts: 'trust',
  siteIds: 'site_id',
  sessionIds: 'session_id',
  tools: 'tool',
  protocols: 'protocol',
  decisions: 'decision',
  subjects: 'subject',
} as const satisfies { [member in keyof EventFilter]?: string }

type ListMember = keyof typeof columnByMember

export function filterCondition(filter: EventFilter): Condition {
  const parts: string[] = []
  const values: (string | number)[] = []
  if (filter.sinceMs !== undefined) {
    parts.push('occurred_at_ms >= ?')
    values.push(filter.sinceMs)
  }
  if (filter.untilMs !== undefined) {
    parts.push('occurred_at_ms < ?')
    values.push(filter.untilMs)
  }
  if (filter.types !== undefined && filter.types.length > 0) {
    parts.push(anyOf(filter.types.map((type) => typeCondition(type, values))))
  }
  for (const member of Object.keys(columnByMember) as ListMember[]) {
    const wanted = filter[member]
    if (wanted === undefined || wanted.length === 0) continue
    parts.push(anyOf(memberConditions(columnByMember[member], wanted, values)))
  }
  return { sql: parts.map((part) => ` AND ${part}`).join(''), values }
}

function anyOf(conditions: string[]): string {
  return `(${conditions.join(' OR ')})`
}

function typeCondition(type: string, values: (string | number)[]): string {
  if (!type.endsWith('.*')) {
    values.push(type)
    return 'type = ?'
  }
  const prefix = type.slice(0, -1)
  values.push(prefix, `${prefix.slice(0, -1)}/`) // '/' is the character after '.'
  return '(type >= ? AND type < ?)'
}

function memberConditions(column: string, wanted: string[], values: (string | number)[]): string[] {
  const present = wanted.filter((value) => value !== '')
  values.push(...present)
  return [
    ...(present.length < wanted.length ? [`${column} IS NULL`] : []),
    ...(present.length > 0 ? [`${column} IN (${present.map(() => '?').join(', ')})`] : []),
  ]
}
