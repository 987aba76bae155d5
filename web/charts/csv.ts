/** A shown table as CSV, made in the browser, and its way into the reader's downloads. */

/** A cell that a spreadsheet would run as a formula gets an apostrophe, as in every CSV of Sightglass. */
function cell(value: string | number): string {
  const text = `${value}`
  const safe = typeof value === 'string' && /^[=+\-@\t\r\n]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** The head first; every line ends with LF, as in every CSV of Sightglass. */
export function csvText(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  return [head, ...rows].map((line) => `${line.map(cell).join(',')}\n`).join('')
}

export function download(name: string, text: string): void {
  // The mark tells spreadsheets that the text is UTF-8.
  const blob = new Blob(['\ufeff', text], { type: 'text/csv;charset=utf-8' })
  const link = document.createElement('a')
  link.href = URL.createObjectURL(blob)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}
