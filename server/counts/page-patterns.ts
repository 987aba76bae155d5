/** Folds pages of one shape into a pattern such as `/products/*`, so that a table of pages stays short. */
import type { PageRequests } from './shapes.ts'

/** From this many pages below one parent on, they are one row. */
const foldedMin = 5

const sumOf = (page: string, rows: readonly PageRequests[]): PageRequests =>
  rows.reduce(
    (sum, row) => ({
      page,
      requests: sum.requests + row.requests,
      refused: sum.refused + row.refused,
      failed: sum.failed + row.failed,
      pages: sum.pages + row.pages,
    }),
    { page, requests: 0, refused: 0, failed: 0, pages: 0 },
  )

/** Numbers, UUIDs and long hexadecimal names differ in pages that are of one kind. */
const isId = (segment: string): boolean =>
  /^(?:\d+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?=[a-f]*\d)[0-9a-f]{16,})$/i.test(segment)

const withoutIds = (page: string): string =>
  page
    .split('/')
    .map((segment) => (isId(segment) ? '*' : segment))
    .join('/')

/** The folder of a page; pages at the root have none. */
function folderOf(page: string): string | null {
  const end = page.lastIndexOf('/', page.length - 2)
  return end > 0 ? page.slice(0, end) : null
}

/** Rows of the same shape become one, if there are at least `min` pages; others stay as they are. */
function fold(
  rows: readonly PageRequests[],
  min: number,
  patternOf: (page: string) => string | null,
): PageRequests[] {
  const groups = new Map<string, PageRequests[]>()
  const single: PageRequests[] = []
  for (const row of rows) {
    const pattern = row.page === null ? null : patternOf(row.page)
    const group = pattern === null ? single : groups.get(pattern)
    if (group === undefined) groups.set(pattern!, [row])
    else group.push(row)
  }
  const folded = Array.from(groups, ([pattern, group]) =>
    group.reduce((sum, { pages }) => sum + pages, 0) < min ? group : [sumOf(pattern, group)],
  )
  return [...single, ...folded.flat()]
}

/**
 * First pages that differ in a number or an id, then pages of one folder. Every request stays in exactly one row, most
 * frequent first; the row of pages beyond the limit comes last.
 */
export function foldPages(pages: readonly PageRequests[]): PageRequests[] {
  const byId = fold(pages, 2, (page) => {
    const pattern = withoutIds(page)
    return pattern === page ? null : pattern
  })
  const byFolder = fold(byId, foldedMin, (page) => {
    const folder = folderOf(page)
    return folder === null ? null : `${folder}/*`
  })
  return byFolder.toSorted(
    (a, b) => Number(a.page === null) - Number(b.page === null) || b.requests - a.requests || order(a, b),
  )
}

const order = (a: PageRequests, b: PageRequests): number => ((a.page ?? '') < (b.page ?? '') ? -1 : 1)
