/** The CSV of traces: its columns (contract §6), and the cells of one event. */
import { csvRow, type CsvCell } from '../http/csv.ts'
import { impliedDecision } from '../ingest/check-event.ts'

export const csvColumns = [
  ...['id', 'siteId', 'sessionId', 'occurredAt', 'type', 'outcome', 'tool', 'durationMs', 'class', 'trust'],
  ...['vendor', 'decision', 'ruleId', 'page', 'protocol', 'subject', 'error', 'event'],
] as const

interface Members {
  [member: string]: unknown
}

/** `json` is the event as stored: a checked one, so that its known members have their types or are null. */
export function eventRow(json: string, guard: boolean): string {
  const event = JSON.parse(json) as Members
  const agent = inner(event['agent'])
  const policy = inner(event['policy'])
  const metadata = inner(event['metadata'])
  const type = String(event['type'])
  const outcome = String(event['outcome'])
  const cells: unknown[] = [
    event['id'],
    event['siteId'],
    event['sessionId'],
    event['occurredAt'],
    type,
    outcome,
    event['tool'],
    event['durationMs'],
    agent['class'],
    agent['trust'],
    agent['vendor'],
    policy['decision'] || impliedDecision(type, outcome),
    policy['ruleId'],
    metadata['page'],
    metadata['protocol'],
    metadata['subject'],
    event['error'],
    json,
  ]
  return csvRow(cells.map(cellOf), guard)
}

function inner(value: unknown): Members {
  return typeof value === 'object' && value !== null ? (value as Members) : {}
}

function cellOf(value: unknown): CsvCell {
  return typeof value === 'string' || typeof value === 'number' ? value : null
}
