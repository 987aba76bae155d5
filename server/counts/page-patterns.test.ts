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
  const many = ['/products/kettle', '/products/lamp', '/products/sofa', '/products/rug', '/products/bed']
  expect(folded(...many, '/products', '/about')).toEqual([
    ['/products/*', 5],
    ['/about', 1],
    ['/products', 1],
  ])
  expect(folded(...many.slice(1)).map(([page]) => page)).toEqual(many.slice(1).toSorted())
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
      selector: (one) => one.page,
      maxLength: 40,
    },
  )
  fc.assert(
    fc.property(rows, (given) => {
      const found = foldPages(given.map((one) => ({ ...one, pages: 1 })))
      for (const of of ['requests', 'refused', 'failed'] as const)
        expect(found.reduce((sum, one) => sum + one[of], 0)).toBe(
          given.reduce((sum, one) => sum + one[of], 0),
        )
      expect(found.reduce((sum, { pages }) => sum + pages, 0)).toBe(given.length)
      for (const { page: of } of given) {
        const matches = found.some(({ page: pattern }) => {
          const mine = of.split('/')
          const theirs = pattern!.split('/')
          return mine.length === theirs.length && theirs.every((one, at) => one === '*' || one === mine[at])
        })
        // A page with a slash at its end is in its folder, too.
        expect(matches || of.endsWith('/')).toBe(true)
      }
    }),
    { numRuns: 300 },
  )
})
