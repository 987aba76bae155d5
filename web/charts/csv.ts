/** Creates CSV files of tables in the browser and downloads them. */
import type { PeriodView } from '../api/api.ts'
import { dayOf } from '../app/zone.ts'

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
  const [since, until] = [Date.parse(period.since), Date.parse(period.until)]
  // The end is exclusive: a range up to midnight ends on the previous day.
  return `${page}-${table}-${dayOf(since)}--${dayOf(Math.max(since, until - 1))}.csv`
}

/** A share from 0 to 1 in percent with at most two decimals. */
export function percentCell(share: number | null): number | null {
  return share === null ? null : Math.round(share * 10_000) / 100
}

/** The change of a number in percent; empty without a previous value. */
export function changeCell(now: number, before: number): number | null {
  return before === 0 ? null : percentCell((now - before) / before)
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
  // The byte order mark tells spreadsheets that the text is UTF-8.
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
