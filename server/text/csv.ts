/** Writes CSV (RFC 4180 with LF), guarded against cells that spreadsheets would run as formulas (contract §8). */

export type CsvCell = string | number | null

/** One record with its line end. `guard` prefixes cells that start with = + - @ TAB CR or LF with an apostrophe. */
export function csvRow(cells: readonly CsvCell[], guard: boolean): string {
  return `${csvCells(cells, guard)}\n`
}

/** The same without the line end. */
export function csvCells(cells: readonly CsvCell[], guard: boolean): string {
  let line = ''
  for (let index = 0; index < cells.length; index++) {
    const cell = cells[index]
    if (index > 0) line += ','
    if (cell !== null && cell !== undefined) line += csvText(String(cell), guard)
  }
  return line
}

const formulaStarts = new Set([...'=+-@\t\r\n'].map((sign) => sign.charCodeAt(0)))
const needsQuotes = /[",\r\n]/

function csvText(text: string, guard: boolean): string {
  const safe = guard && formulaStarts.has(text.charCodeAt(0)) ? `'${text}` : text
  return needsQuotes.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
