/** Visits by class and vendor, as a table with its own query because it takes longer than counting. */
import { useQuery } from '../../query/use-query.ts'
import { countsQuery, fetchAllRows } from '../../range/counts-query.ts'
import type { CountedName, DetectMatrix, PeriodView } from '../../api/api.ts'
import { type Column, DataTable } from '../../charts/data-table.tsx'
import { Problem } from '../../components/problem.tsx'
import { Text, visibleText } from '../../components/text.tsx'
import { count, counted } from '../../text/format.ts'
import { type LogsFilter, logsHref } from '../../range/filters.tsx'

const order = ['crawler', 'webmcp', 'dom', 'screenshot']
const classesMax = 8

interface MatrixRow {
  vendor: CountedName
  total: number
  byClass: Map<string, number> // by the column's key
}

interface MatrixColumn {
  key: string
  of: CountedName
}

/** Vendors as rows, classes as columns: known classes, the largest others, the rest as one column, then no class. */
export function matrixOf(cells: DetectMatrix['cells']): { rows: MatrixRow[]; columns: MatrixColumn[] } {
  const totals = new Map<string, { of: CountedName; events: number }>()
  for (const cell of cells) {
    const classTotal = totals.get(keyOf(cell.class)) ?? { of: cell.class, events: 0 }
    classTotal.events += cell.count
    totals.set(keyOf(cell.class), classTotal)
  }
  const namedClasses = [...totals.values()].filter(({ of: countedClass }) => typeof countedClass === 'object')
  namedClasses.sort((a, b) => place(a.of) - place(b.of) || b.events - a.events)
  const shown = new Set(namedClasses.slice(0, classesMax).map(({ of: countedClass }) => keyOf(countedClass)))
  const columnOf = (countedClass: CountedName): CountedName =>
    typeof countedClass === 'string' || shown.has(keyOf(countedClass)) ? countedClass : 'other'
  const rows = new Map<string, MatrixRow>()
  const usedKeys = new Set<string>()
  for (const { vendor, count: events, class: countedClass } of cells) {
    const row = rows.get(keyOf(vendor)) ?? { vendor, total: 0, byClass: new Map() }
    const key = keyOf(columnOf(countedClass))
    usedKeys.add(key)
    row.total += events
    row.byClass.set(key, (row.byClass.get(key) ?? 0) + events)
    rows.set(keyOf(vendor), row)
  }
  const allClasses: CountedName[] = [
    ...namedClasses.slice(0, classesMax).map(({ of: countedClass }) => countedClass),
    'other',
    'missing',
  ]
  const columns = allClasses
    .map((countedClass) => ({ key: keyOf(countedClass), of: countedClass }))
    .filter(({ key }) => usedKeys.has(key))
  return { rows: [...rows.values()], columns }
}

function keyOf(name: CountedName): string {
  return typeof name === 'string' ? name : `=${name.name}`
}

function place(countedClass: CountedName): number {
  const position = typeof countedClass === 'string' ? -1 : order.indexOf(countedClass.name)
  return position < 0 ? order.length : position
}

interface MatrixProps {
  period: PeriodView
  detected: number // a change fetches again
  of: LogsFilter // the visits of the range, for Logs
}

export function Matrix({ period, detected, of: scope }: MatrixProps) {
  const { data: matrix, error: problem } = useQuery(countsQuery('detect/matrix'), detected)
  if (problem) return <Problem error={problem} />
  if (!matrix || matrix.counted === 0) return null
  const { rows, columns } = matrixOf(matrix.cells)
  const largest = Math.max(...matrix.cells.map((cell) => cell.count))
  return (
    <DataTable
      title="Classes by vendor"
      about={aboutOf(matrix.counted, detected)}
      csv={{
        page: 'detect',
        table: 'classes-by-vendor',
        period,
        all: async (signal) => matrixOf((await fetchAllRows('detect/matrix', signal)).cells).rows,
      }}
      columns={[vendorColumn, ...columns.map((column) => classColumn(column, largest, scope)), totalColumn]}
      rows={rows}
      keyOf={(row) => keyOf(row.vendor)}
      sortBy="All"
    />
  )
}

/** While events arrive, the two numbers are fetched at slightly different times, so only a lower one is reported. */
function aboutOf(inPairs: number, detected: number): string {
  if (inPairs >= detected) return `all ${counted(inPairs, 'visit')} in this range`
  const missing = counted(detected - inPairs, 'visit')
  return `${counted(inPairs, 'visit')}; ${missing} were deleted before this breakdown existed`
}

const vendorColumn: Column<MatrixRow> = {
  name: 'Vendor',
  value: ({ vendor }) => textOf(vendor),
  show: ({ vendor }) =>
    typeof vendor === 'string' ? (
      <span class="muted">{textOf(vendor)}</span>
    ) : (
      <Text value={vendor.name} max={32} />
    ),
}

function textOf(name: CountedName): string {
  if (name === 'missing') return '(none)'
  return name === 'other' ? '(other)' : name.name
}

const totalColumn: Column<MatrixRow> = { name: 'All', number: true, value: (row) => row.total }

function classTitle(countedClass: CountedName): string {
  if (typeof countedClass === 'object') return visibleText(countedClass.name).slice(0, 32)
  return countedClass === 'missing' ? 'no class' : 'other classes'
}

/** Higher counts have a darker background. The number is shown in any case. */
function classColumn({ key, of: name }: MatrixColumn, largest: number, scope: LogsFilter): Column<MatrixRow> {
  const countIn = (row: MatrixRow): number => row.byClass.get(key) ?? 0
  return {
    name: classTitle(name),
    number: true,
    value: countIn,
    show: (row) => {
      const events = countIn(row)
      if (events === 0) return <span class="muted">0</span>
      const share = Math.ceil(30 * Math.sqrt(events / largest))
      const style = { background: `color-mix(in srgb, var(--accent) ${share}%, transparent)` }
      const text = <span style={style}>{count(events)}</span>
      if (typeof name === 'string' || typeof row.vendor === 'string')
        return <span class="matrix-cell">{text}</span>
      return (
        <a class="matrix-cell" href={logsHref({ ...scope, agentClass: name.name, vendor: row.vendor.name })}>
          {text}
        </a>
      )
    },
  }
}
