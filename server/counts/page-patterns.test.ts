/** Pages of one shape become one row, and no request is lost or counted twice. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { foldPages } from './page-patterns.ts'
import type { PageRequests } from './shapes.ts'

const row = (page: string | null, requests = 1): PageRequests => ({
  page,
  requests,
  refused: 0,
  failed: 0,
  pages: 1,
})
const folded = (...pages: (string | null)[]) =>
  foldPages(pages.map((page) => row(page))).map(({ page, pages: count }) => [page, count])

test('numbers and ids become one pattern, and a folder of five pages another', () => {
  expect(folded('/users/1/orders', '/users/22/orders', '/users/1')).toEqual([
    ['/users/*/orders', 2],
    ['/users/1', 1],
  ])
  const manyPages = ['/products/kettle', '/products/lamp', '/products/sofa', '/products/rug', '/products/bed']
  expect(folded(...manyPages, '/products', '/about')).toEqual([
    ['/products/*', 5],
    ['/about', 1],
    ['/products', 1],
  ])
  expect(folded(...manyPages.slice(1)).map(([page]) => page)).toEqual(manyPages.slice(1).toSorted())
  expect(folded('/a', '/b', '/c', '/d', '/e', '/f')).toHaveLength(6) // pages at the root differ in kind
  expect(
    folded('/f/0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0', '/f/0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f1'),
  ).toEqual([['/f/*', 2]])
})

test('most frequent first; pages beyond the limit come last', () => {
  expect(
    foldPages([row(null, 90), row('/b', 5), row('/a', 5), row('/c', 7)]).map(({ page }) => page),
  ).toEqual(['/c', '/a', '/b', null])
})

test('law: sums stay, and every page is in a row that matches it', () => {
  const segment = fc.constantFrom('a', 'b', '1', '22', '', '*', 'deadbeefdeadbeef1', '\u202e<b>')
  const page = fc.array(segment, { maxLength: 4 }).map((parts) => `/${parts.join('/')}`)
  const rows = fc.uniqueArray(
    fc.record({ page, requests: fc.nat(99), refused: fc.nat(9), failed: fc.nat(9) }),
    {
      selector: (pageRow) => pageRow.page,
      maxLength: 40,
    },
  )
  fc.assert(
    fc.property(rows, (pageRows) => {
      const foldedPages = foldPages(pageRows.map((pageRow) => ({ ...pageRow, pages: 1 })))
      for (const field of ['requests', 'refused', 'failed'] as const)
        expect(foldedPages.reduce((sum, foldedPage) => sum + foldedPage[field], 0)).toBe(
          pageRows.reduce((sum, pageRow) => sum + pageRow[field], 0),
        )
      expect(foldedPages.reduce((sum, { pages }) => sum + pages, 0)).toBe(pageRows.length)
      for (const { page: pagePath } of pageRows) {
        const matches = foldedPages.some(({ page: pattern }) => {
          const mine = pagePath.split('/')
          const theirs = pattern!.split('/')
          return (
            mine.length === theirs.length &&
            theirs.every((part, index) => part === '*' || part === mine[index])
          )
        })
        // A page with a slash at its end is in its folder, too.
        expect(matches || pagePath.endsWith('/')).toBe(true)
      }
    }),
    { numRuns: 300 },
  )
})
