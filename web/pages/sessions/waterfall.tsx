/** The spans of a session as a tree with their durations: a table whose rows have a bar on one time axis. */
import { type Column, DataTable } from '../../charts/data-table.tsx'
import { Chip } from '../../components/marks.tsx'
import { Text } from '../../components/text.tsx'
import { counted, duration } from '../../text/format.ts'
import { navigate } from '../../app/router.ts'
import type { TraceEvent } from '../../api/event-shapes.ts'

interface SpanRow {
  event: TraceEvent
  name: string // untrusted text
  order: number // in the tree, from 1
  level: number // from 1
  startMs: number // since the first span, with fractions
  durationMs: number | null // null: it did not end
}

interface Span {
  event: TraceEvent
  id: string
  parentId: string
  startMs: number
  children: Span[]
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '')

/** The spans among the events. Several events of one span are one row: the first that is not a decision. */
function spansOf(events: readonly TraceEvent[]): Map<string, Span> {
  const spans = new Map<string, Span>()
  for (const event of events) {
    const { traceId, spanId, parentSpanId } = event.metadata ?? {}
    if (text(traceId) === '' || text(spanId) === '') continue
    const id = `${text(traceId)}:${text(spanId)}`
    const existingSpan = spans.get(id)
    if (existingSpan !== undefined && existingSpan.event.type !== 'authz.evaluated') continue
    const startMs = preciseMs(event.occurredAt)
    spans.set(id, { event, id, parentId: `${text(traceId)}:${text(parentSpanId)}`, startMs, children: [] })
  }
  return spans
}

/** Milliseconds with the digits that a Date does not have. */
function preciseMs(time: string): number {
  const extraDigits = /\.\d{3}(\d{1,6})/.exec(time)?.[1]
  return Date.parse(time) + (extraDigits === undefined ? 0 : Number(`0.${extraDigits}`))
}

/**
 * Spans in the order of their tree, children by their start. A span whose parent is not here is at the top. So is the
 * earliest span of a circle of parents, which only a broken sender makes.
 */
export function spanRows(events: readonly TraceEvent[]): SpanRow[] {
  const spans = spansOf(events)
  const byStart = [...spans.values()].sort((a, b) => a.startMs - b.startMs || (a.id < b.id ? -1 : 1))
  const tops: Span[] = []
  for (const span of byStart) {
    const parent = spans.get(span.parentId)
    if (parent === undefined || parent === span) tops.push(span)
    else parent.children.push(span)
  }
  const originMs = byStart[0]?.startMs ?? 0
  const rows: SpanRow[] = []
  const visitedSpans = new Set<Span>()
  // Without recursion: a chain may be as long as the session.
  const add = (top: Span): void => {
    const open: [span: Span, level: number][] = [[top, 1]]
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const [span, level] = next
      if (visitedSpans.has(span)) continue
      visitedSpans.add(span)
      rows.push(rowOf(span, level, rows.length + 1, originMs))
      for (const child of span.children.toReversed()) open.push([child, level + 1])
    }
  }
  tops.forEach(add)
  if (visitedSpans.size < spans.size) byStart.forEach(add)
  return rows
}

function rowOf({ event, startMs }: Span, level: number, order: number, originMs: number): SpanRow {
  const { metadata, durationMs, tool, type } = event
  const name = text(metadata?.span) || text(tool) || type
  const took = typeof durationMs === 'number' ? durationMs : null
  return { event, name, order, level, startMs: startMs - originMs, durationMs: took }
}

export function Waterfall({ events, isWhole }: { events: readonly TraceEvent[]; isWhole: boolean }) {
  const rows = spanRows(events)
  if (rows.length === 0) return null
  const totalMs = rows.reduce((end, { startMs, durationMs }) => Math.max(end, startMs + (durationMs ?? 0)), 0)
  return (
    <DataTable
      title="Spans"
      about={`${counted(rows.length, 'span')} in ${duration(totalMs)}${isWhole ? '' : ', of the events below'}`}
      csv={{ page: 'sessions', table: 'spans' }}
      columns={columnsOf(totalMs)}
      rows={rows}
      keyOf={({ event }) => event.id}
      sortBy="#"
      ascending
      onOpen={({ event }) => navigate(`/logs?event=${encodeURIComponent(event.id)}`)}
      firstRows={24}
    />
  )
}

/** Deeper levels are indented no further, so that names stay readable. */
const indentsMax = 12

function columnsOf(totalMs: number): Column<SpanRow>[] {
  return [
    { name: '#', value: ({ order }) => order, number: true, about: 'The order in the tree' },
    {
      name: 'Span',
      value: ({ name }) => name,
      show: ({ name, level, event }) => (
        <span class="span-name" style={{ '--indents': Math.min(level, indentsMax) - 1 }}>
          <a href={`/logs?event=${encodeURIComponent(event.id)}`}>
            <Text value={name} max={60} />
          </a>
        </span>
      ),
    },
    {
      name: 'Level',
      value: ({ level }) => level,
      number: true,
      about: 'Nesting depth, from 1',
    },
    {
      name: 'Start',
      unit: 'ms',
      number: true,
      value: ({ startMs }) => startMs,
      show: ({ startMs }) => (startMs === 0 ? '0' : `+${duration(startMs)}`),
    },
    {
      name: 'Duration',
      unit: 'ms',
      number: true,
      value: ({ durationMs }) => durationMs,
      show: ({ durationMs }) => (durationMs === null ? 'open' : duration(durationMs)),
    },
    {
      name: 'Time',
      value: ({ startMs }) => startMs,
      about: 'From the first span to the end of the last one',
      show: (row) => <Bar row={row} totalMs={totalMs} />,
    },
    {
      name: 'Outcome',
      value: ({ event }) => event.outcome,
      show: ({ event }) => <Chip value={event.outcome} />,
    },
  ]
}

const tones = new Map([
  ['success', ''],
  ['blocked', ' block'],
  ['error', ' error'],
])

/** The columns beside it say the same in numbers. */
function Bar({ row, totalMs }: { row: SpanRow; totalMs: number }) {
  const percent = (ms: number): number =>
    totalMs === 0 ? 0 : Math.min(100, Math.max(0, (ms / totalMs) * 100))
  const startPercent = percent(row.startMs)
  const width = Math.max(0.5, percent(row.durationMs ?? 0))
  const tone = tones.get(row.event.outcome) ?? ' other'
  return (
    <span class={`span-bar${tone}`} aria-hidden="true">
      <i
        style={{
          insetInlineStart: `${Math.min(startPercent, 99.5)}%`,
          width: `${Math.min(width, 100 - startPercent)}%`,
        }}
      />
    </span>
  )
}
