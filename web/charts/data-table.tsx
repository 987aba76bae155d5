/** A table that sorts by column, supports the keyboard and opens rows, and its CSV file. */
import './data-table.css'
import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { dayOf, now, zone } from '../app/clock.ts'
import { useDeferred } from '../components/rendering.tsx'
import { Problem, useTask } from '../components/problem.tsx'
import { count, isoWithOffset } from '../text/format.ts'
import { printing } from '../app/theme.ts'
import type { ComponentChildren } from 'preact'
import type { PeriodView } from '../api/api.ts'

type Cell = string | number | null

export interface Column<Row> {
  name: string
  /** The value for sorting and CSV; null sorts last and is an empty cell. */
  value: (row: Row) => Cell
  show?: (row: Row) => ComponentChildren // default: the value
  number?: boolean
  time?: boolean // `value` is an ISO time; CSV has it in the chosen zone, named in the header
  about?: string // tooltip of the header
  unit?: string // unit of the cells in CSV, added to its header
  /** The cell in CSV, if it differs from the value. */
  csv?: (row: Row) => Cell
}

interface DataTableProps<Row> {
  title: string
  about?: ComponentChildren
  csv: CsvFile<Row>
  columns: Column<Row>[]
  rows: Row[]
  /** Child rows, which follow their row in every sort order and are sorted among each other. */
  childrenOf?: (row: Row) => Row[]
  /** Rows of several values, such as "(12 others)", which come last in every sort order. */
  isRest?: (row: Row) => boolean
  keyOf: (row: Row) => string
  sortBy?: string // initial sort column; default: the first number
  ascending?: boolean
  onOpen?: (row: Row) => void
  empty?: string
  firstRows?: number // rows in the first paint, if not the default
}

const rowsMax = 50

/** The rows that fit below a chart on a laptop. The others render after the first paint. */
const firstRowsMax = 10

function compare(a: Cell, b: Cell): number {
  if (a === null || b === null) return 0
  return a < b ? -1 : a > b ? 1 : 0
}

/** Each row followed by its children, both sorted. */
function nested<Row>(
  rows: readonly Row[],
  childrenOf: ((row: Row) => Row[]) | undefined,
  column: Column<Row> | undefined,
  up: boolean,
): Row[] {
  const top = sorted(rows, column, up)
  return childrenOf === undefined ? top : top.flatMap((row) => [row, ...sorted(childrenOf(row), column, up)])
}

/** Rows without a value come last in both directions. */
export function sorted<Row>(rows: readonly Row[], column: Column<Row> | undefined, up: boolean): Row[] {
  if (!column) return [...rows]
  return rows.toSorted((a, b) => {
    const x = column.value(a)
    const y = column.value(b)
    if (x === null || y === null) return Number(x === null) - Number(y === null)
    return up ? compare(x, y) : compare(y, x)
  })
}

export function DataTable<Row>(props: DataTableProps<Row>) {
  const { columns } = props
  const first = props.sortBy ?? columns.find((column) => column.number)?.name ?? ''
  const sort = useSignal({ name: first, up: props.ascending ?? false })
  const whole = useSignal(false)
  const order = columns.find((column) => column.name === sort.value.name)
  const { isRest = () => false } = props
  const nest = (allRows: readonly Row[]) =>
    nested(allRows, props.childrenOf, order, sort.value.up).toSorted(
      (a, b) => Number(isRest(a)) - Number(isRest(b)),
    )
  const isLeaf = (row: Row): boolean => (props.childrenOf?.(row) ?? []).length === 0
  const rows = nest(props.rows)
  const shown = whole.value || printing.value ? rows : rows.slice(0, rowsMax)
  const drawn = useDeferred() ? shown : shown.slice(0, props.firstRows ?? firstRowsMax)
  const sortBy = (column: Column<Row>): void => {
    const isCurrent = sort.value.name === column.name
    sort.value = { name: column.name, up: isCurrent ? !sort.value.up : !column.number }
  }
  return (
    <section class="panel data-panel">
      <header>
        <h2>{props.title}</h2>
        {props.about !== undefined && <small class="muted">{props.about}</small>}
        {rows.length > 0 && (
          <SaveCsv
            file={props.csv}
            columns={columns}
            rows={props.rows}
            leaves={(allRows) => nest(allRows).filter(isLeaf)}
          />
        )}
      </header>
      {rows.length === 0 ? (
        <p class="muted no-rows">{props.empty ?? 'No data in this range.'}</p>
      ) : (
        <Rows {...props} rows={drawn} sort={sort.value} onSort={sortBy} />
      )}
      {shown.length < rows.length && (
        <p class="table-more">
          <button type="button" class="button" onClick={() => (whole.value = true)}>
            Show all {count(rows.length)}
          </button>
        </p>
      )}
    </section>
  )
}

interface SaveCsvProps<Row> {
  file: CsvFile<Row>
  columns: Column<Row>[]
  rows: Row[]
  leaves: (rows: readonly Row[]) => Row[]
}

/** The whole table in the visible order, including rows that are not rendered. Children replace their row. */
function SaveCsv<Row>({ file, columns, rows, leaves }: SaveCsvProps<Row>) {
  const { busy, problem, run } = useTask()
  const controller = useRef(new AbortController())
  useEffect(() => () => controller.current.abort(), [])
  const save = () =>
    run(async () => {
      const { signal } = controller.current
      const csvRows = leaves(file.all === undefined ? rows : await file.all(signal))
      if (!signal.aborted) download(csvName(file, now()), tableCsv(columns, csvRows))
    })
  return (
    <>
      <button
        type="button"
        class="link-button csv-button"
        aria-disabled={busy.value}
        onClick={() => void save()}
      >
        {busy.value ? 'Exporting…' : 'Save as CSV'}
      </button>
      {problem.value && <Problem error={problem.value} onRetry={() => void save()} />}
    </>
  )
}

/** Times are in the chosen zone, with their offset. */
function fileCell<Row>({ time, csv, value }: Column<Row>, row: Row): string | number {
  const cell = (csv ?? value)(row) ?? ''
  const ms = time ? Date.parse(`${cell}`) : Number.NaN
  return Number.isNaN(ms) ? cell : isoWithOffset(ms)
}

export function tableCsv<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  const head = columns.map(({ name, unit, time }) =>
    [name, unit, time && zone.peek()].filter((part) => typeof part === 'string').join(', '),
  )
  return csvText(
    head,
    rows.map((row) => columns.map((column) => fileCell(column, row))),
  )
}

interface RowsProps<Row> extends DataTableProps<Row> {
  sort: { name: string; up: boolean }
  onSort: (column: Column<Row>) => void
}

function Rows<Row>({ title, columns, rows, keyOf, onOpen, sort, onSort }: RowsProps<Row>) {
  const body = useRef<HTMLTableSectionElement>(null)
  const active = useSignal(0)
  const move = (to: number): void => {
    active.value = Math.max(0, Math.min(rows.length - 1, to))
    body.current?.rows[active.value]?.focus()
  }
  const onKey = (event: KeyboardEvent, index: number): void => {
    const to = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: rows.length - 1 }[event.key]
    const onRow = event.target === event.currentTarget
    if (to !== undefined) move(to)
    else if (event.key === 'Enter' && onRow && onOpen) onOpen(rows[index] as Row)
    else return
    event.preventDefault()
    event.stopPropagation()
  }
  const current = Math.min(active.value, rows.length - 1)
  return (
    <div class="data-scroll">
      <table class="data-table" aria-label={title}>
        <thead>
          <tr>
            {columns.map((column) => (
              <HeadCell key={column.name} column={column} sort={sort} onSort={onSort} />
            ))}
          </tr>
        </thead>
        <tbody ref={body}>
          {rows.map((row, index) => (
            <tr
              key={keyOf(row)}
              tabIndex={index === current ? 0 : -1}
              class={onOpen ? 'opens' : ''}
              onFocus={() => (active.value = index)}
              onKeyDown={(event) => onKey(event, index)}
              onClick={(event) => {
                if (event.target instanceof Element && event.target.closest('a, button')) return
                onOpen?.(row)
              }}
            >
              {columns.map((column) => (
                <td key={column.name} class={column.number ? 'number' : ''}>
                  <Shown column={column} row={row} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function HeadCell<Row>(props: {
  column: Column<Row>
  sort: { name: string; up: boolean }
  onSort: (column: Column<Row>) => void
}) {
  const { column, sort, onSort } = props
  const isSorted = sort.name === column.name
  return (
    <th
      scope="col"
      class={column.number ? 'number' : ''}
      aria-sort={isSorted ? (sort.up ? 'ascending' : 'descending') : undefined}
    >
      <button type="button" title={column.about} onClick={() => onSort(column)}>
        {column.name}
        <span aria-hidden="true">{isSorted ? (sort.up ? ' ↑' : ' ↓') : ''}</span>
      </button>
    </th>
  )
}

function Shown<Row>({ column, row }: { column: Column<Row>; row: Row }) {
  if (column.show) return <>{column.show(row)}</>
  const value = column.value(row)
  return <>{typeof value === 'number' ? count(value) : value}</>
}

/** The file name's parts; `all` reads all rows if the page has only some of them. */
export interface CsvFile<Row> {
  page: string
  table: string
  period?: Pick<PeriodView, 'since' | 'until'> // default: today
  all?: (signal: AbortSignal) => Promise<Row[]>
}

/** "detect-vendors-2026-11-15--2026-11-22.csv": the first and the last day of the range in the chosen zone. */
export function csvName({ page, table, period }: Omit<CsvFile<never>, 'all'>, nowMs: number): string {
  if (period === undefined) return `${page}-${table}-${dayOf(nowMs)}.csv`
  const since = Date.parse(period.since)
  const until = Date.parse(period.until)
  // The end is exclusive: a range up to midnight ends on the previous day.
  return `${page}-${table}-${dayOf(since)}--${dayOf(Math.max(since, until - 1))}.csv`
}

/** A share from 0 to 1 in percent with at most two decimals. */
export function percentCell(share: number | null): number | null {
  return share === null ? null : Math.round(share * 10_000) / 100
}

/** The change of a number in percent; empty without a previous value. */
export function changeCell(now: number, previousCount: number): number | null {
  return previousCount === 0 ? null : percentCell((now - previousCount) / previousCount)
}

/** Three significant digits, because durations are accurate to 2 %. */
export function sketchedCell(ms: number | null | undefined): number | null {
  return ms == null ? null : Number(ms.toPrecision(3))
}

/** Cells that a spreadsheet would run as a formula get an apostrophe, as in every CSV of Sightglass. */
function cell(value: string | number): string {
  const text = `${value}`
  const safe = typeof value === 'string' && /^[=+\-@\t\r\n]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** The header comes first. Lines end with LF, as in every CSV of Sightglass (contract §8). */
export function csvText(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  return [head, ...rows].map((line) => `${line.map(cell).join(',')}\n`).join('')
}

export function download(name: string, text: string): void {
  // Spreadsheets read the text as UTF-8 because of the byte order mark.
  const blob = new Blob(['\ufeff', text], { type: 'text/csv;charset=utf-8' })
  const link = document.createElement('a')
  link.href = URL.createObjectURL(blob)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}

/** Maximum rows in a file of a paged list. Longer lists are exported with the API. */
export const csvRowsMax = 50_000

interface Page<Row> {
  rows: Row[]
  next: string | null
}

/** All rows of a paged list, at most `csvRowsMax`. */
export async function everyRow<Row>(ask: (cursor: string | null) => Promise<Page<Row>>): Promise<Row[]> {
  const rows: Row[] = []
  let cursor: string | null = null
  do {
    const page: Page<Row> = await ask(cursor)
    rows.push(...page.rows)
    cursor = page.next
  } while (cursor !== null && rows.length < csvRowsMax)
  return rows.slice(0, csvRowsMax)
}
