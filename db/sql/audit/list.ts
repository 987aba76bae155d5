/** Lists a page of an organization's audit entries, newest first, filtered by actor, action, time and text. */
import type { Database, Dialect } from '../database.ts'
import type { AuditEntry, AuditFilter, AuditQuery, AuditRow, AuditStore } from '../../contract/store.ts'
import { auditColumns } from './append.ts'
import { auditTrim } from './trim.ts'
import { positionText } from '../../contract/audit.ts'

/** `seq` is the entry's position in its organization's chain. */
export function listAudit(db: Database, query: AuditQuery): Awaited<ReturnType<AuditStore['list']>> {
  // A colon follows every digit.
  const endPosition = query.beforeSeq === null ? ':' : positionText(query.beforeSeq)
  const { sql, values } = conditions(query.filter ?? {}, db.dialect.matches)
  const startPosition = positionText(auditTrim(db, query.orgId)?.count ?? 0)
  const rows = db
    .query<AuditRow, (string | number)[]>(
      `SELECT ${auditColumns} FROM audit_entry WHERE orgId = ? AND position > ? AND position < ?${sql}
       ORDER BY position DESC LIMIT ?`,
    )
    .all(query.orgId, startPosition, endPosition, ...values, query.limit + 1)
  const entries = rows.slice(0, query.limit).map(entryOf)
  return { entries, next: rows.length > query.limit ? (entries.at(-1)?.seq ?? null) : null }
}

/** As stored, oldest first. */
export function auditRows(
  db: Database,
  { orgId, afterSeq, limit }: Parameters<AuditStore['rows']>[0],
): AuditRow[] {
  const trimmedCount = auditTrim(db, orgId)?.count ?? 0
  return db
    .query<AuditRow, [string, string, number]>(
      `SELECT ${auditColumns} FROM audit_entry WHERE orgId = ? AND position > ? ORDER BY position LIMIT ?`,
    )
    .all(orgId, positionText(Math.max(afterSeq, trimmedCount)), limit)
}

function conditions(filter: AuditFilter, matches: Dialect['matches']): { sql: string; values: string[] } {
  const parts: string[] = []
  const values: string[] = []
  const add = (sql: string, ...parameters: string[]): void => {
    parts.push(` AND ${sql}`)
    values.push(...parameters)
  }
  // All times have the same length, so their texts sort like the times.
  if (filter.sinceMs !== undefined) add('occurredAt >= ?', new Date(filter.sinceMs).toISOString())
  if (filter.untilMs !== undefined) add('occurredAt < ?', new Date(filter.untilMs).toISOString())
  if (filter.actors?.length) add(anyOf('actor', filter.actors), ...filter.actors)
  if (filter.targets?.length) add(anyOf('target', filter.targets), ...filter.targets)
  if (filter.actions?.length) {
    const formatAction = (action: string): string =>
      action.endsWith('.*') ? 'substr(action, 1, ?) = ?' : 'action = ?'
    add(`(${filter.actions.map(formatAction).join(' OR ')})`)
    for (const action of filter.actions) {
      if (action.endsWith('.*')) values.push(String(action.length - 1), action.slice(0, -1))
      else values.push(action)
    }
  }
  if (filter.text !== undefined) {
    const pattern = `%${filter.text.replace(/[\\%_]/g, '\\$&')}%`
    const columns = ['actor', 'action', 'target', 'metadata']
    add(`(${columns.map((name) => matches(name, '?')).join(' OR ')})`, ...columns.map(() => pattern))
  }
  return { sql: parts.join(''), values }
}

function anyOf(column: string, values: string[]): string {
  return `${column} IN (${values.map(() => '?').join(', ')})`
}

function entryOf(row: AuditRow): AuditEntry & { seq: number } {
  return {
    id: row.id,
    orgId: row.orgId,
    actor: row.actor,
    action: row.action,
    target: row.target,
    metadata: JSON.parse(row.metadata) as AuditEntry['metadata'],
    occurredAtMs: Date.parse(row.occurredAt),
    seq: Number(row.position),
  }
}
