/** Classes against vendors: which vendor came as what. Asked on its own, because the detections themselves are read. */
import { api, type DetectMatrix } from '../../api.ts'
import { type Column, DataTable } from '../../charts/data-table.tsx'
import { Problem } from '../../components/problem.tsx'
import { Text } from '../../components/text.tsx'
import { count, counted, utcTime } from '../../format.ts'
import { query } from '../../router.ts'
import { type LogsFilter, logsHref } from '../../range/logs-link.ts'
import { askedOf, choiceOf } from '../../range/range.ts'
import { useAnswer } from '../../range/use-answer.ts'
import { visibleText } from '../../text.ts'

const order = ['crawler', 'webmcp', 'dom', 'screenshot']
const classesMax = 8

export interface MatrixRow {
  vendor: string | null
  total: number
  byClass: Map<string | null, number>
}

/** Vendors as rows, and the classes that occur: the known ones first, the largest others, then (null) none. */
export function matrixOf(cells: DetectMatrix['cells']): { rows: MatrixRow[]; classes: (string | null)[] } {
  const rows = new Map<string | null, MatrixRow>()
  const totals = new Map<string | null, number>()
  for (const { vendor, count: events, class: of } of cells) {
    const row = rows.get(vendor) ?? { vendor, total: 0, byClass: new Map() }
    row.total += events
    row.byClass.set(of, (row.byClass.get(of) ?? 0) + events)
    rows.set(vendor, row)
    totals.set(of, (totals.get(of) ?? 0) + events)
  }
  const place = (of: string | null): number => (of === null ? 99 : (order.indexOf(of) + 9) % 9)
  const classes = [...totals]
    .sort(([a, x], [b, y]) => place(a) - place(b) || y - x)
    .map(([of]) => of)
    .slice(0, classesMax)
  return { rows: [...rows.values()], classes }
}

interface MatrixProps {
  detected: number // changes when something was detected: then it is asked anew
  of: LogsFilter // the detections of the range, for Logs
}

export function Matrix({ detected, of }: MatrixProps) {
  const params = askedOf(choiceOf(query.value))
  const { found, problem } = useAnswer(
    `${params}`,
    (signal) => api.counts('detect/matrix', params, signal),
    detected,
  )
  if (problem) return <Problem error={problem} />
  if (!found || found.looked === 0) return null
  const { rows, classes } = matrixOf(found.cells)
  const largest = Math.max(...found.cells.map((cell) => cell.count))
  return (
    <DataTable
      title="Classes by vendor"
      about={aboutOf(found)}
      csvName="classes-by-vendor"
      columns={[vendorColumn, ...classes.map((name) => classColumn(name, largest, of)), totalColumn]}
      rows={rows}
      keyOf={(row) => JSON.stringify(row.vendor)}
      sortBy="All"
    />
  )
}

function aboutOf({ complete, looked, since }: DetectMatrix): string {
  if (complete) return `all ${counted(looked, 'detection')} of this range that are kept`
  return `the newest ${counted(looked, 'detection')}, back to ${since === null ? '' : utcTime(Date.parse(since))}`
}

const vendorColumn: Column<MatrixRow> = {
  name: 'Vendor',
  value: (row) => row.vendor ?? '(none)',
  show: (row) =>
    row.vendor === null ? <span class="muted">(none)</span> : <Text value={row.vendor} max={32} />,
}

const totalColumn: Column<MatrixRow> = { name: 'All', number: true, value: (row) => row.total }

/** The fuller a cell, the deeper its ground; the number says it in any case. */
function classColumn(name: string | null, largest: number, of: LogsFilter): Column<MatrixRow> {
  const countIn = (row: MatrixRow): number => row.byClass.get(name) ?? 0
  return {
    name: name === null ? 'no class' : visibleText(name).slice(0, 32),
    number: true,
    value: countIn,
    show: (row) => {
      const events = countIn(row)
      if (events === 0) return <span class="muted">0</span>
      const share = Math.ceil(30 * Math.sqrt(events / largest))
      const style = { background: `color-mix(in srgb, var(--accent) ${share}%, transparent)` }
      const text = <span style={style}>{count(events)}</span>
      if (name === null || row.vendor === null) return <span class="matrix-cell">{text}</span>
      return (
        <a class="matrix-cell" href={logsHref({ ...of, agentClass: name, vendor: row.vendor })}>
          {text}
        </a>
      )
    },
  }
}
