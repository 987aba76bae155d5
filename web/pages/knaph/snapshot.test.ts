/** A snapshot: every page is in the tree, policies are texts, and missing parts explain the score. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Json } from '../../api/registry-api.ts'
import { type MapNode, policiesOf, siteMapOf } from './snapshot.ts'

const drawn = (nodes: MapNode[], depth = 0): string[] =>
  nodes.flatMap((node) => [
    `${'  '.repeat(depth)}${node.part}${node.page ? '' : ' (no page)'}`,
    ...drawn(node.children, depth + 1),
  ])

test('pages are below their parent path', () => {
  const pages = ['/', '/products', '/products/17', '/a/b', '/products'].map((path) => ({ path }))
  const map = siteMapOf({ siteMap: { pages: [...pages, { name: 'no path' }, 7] } })
  expect(drawn(map.roots)).toEqual(['/', '/products', '  /17', '  /products', '/a (no page)', '  /b'])
  expect([map.pages, map.odd, map.cut]).toEqual([5, 2, false])
})

test('policies of any form become texts', () => {
  expect(policiesOf({ policies: { returns: '30 days', privacy: ['a', 'b'], odd: 7, none: null } })).toEqual([
    { name: 'returns', texts: ['30 days'] },
    { name: 'privacy', texts: ['a', 'b'] },
    { name: 'odd', texts: ['7'] },
    { name: 'none', texts: ['null'] },
  ])
})

test('law: every page is in the tree exactly once', () => {
  const path = fc
    .array(fc.constantFrom('a', 'b', '..', '', 'x y', '<b>'), { maxLength: 20 })
    .map((segments) => `/${segments.join('/')}`)
  fc.assert(
    fc.property(fc.array(path, { maxLength: 40 }), (paths) => {
      const map = siteMapOf({ siteMap: { pages: paths.map((pagePath) => ({ path: pagePath })) } })
      const allNodes = (nodes: MapNode[]): MapNode[] =>
        nodes.flatMap((node) => [node, ...allNodes(node.children)])
      const nodes = allNodes(map.roots)
      expect(nodes.flatMap((node) => (node.page ? [node.page.path] : [])).sort()).toEqual([...paths].sort())
      expect(new Set(nodes.map((node) => node.key)).size).toBe(nodes.length)
    }),
  )
})

test('law: any JSON is a snapshot that can be shown', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const snapshot = { siteMap: value, policies: value } as unknown as { [name: string]: Json }
      expect(siteMapOf(snapshot).pages).toBeGreaterThanOrEqual(0)
      expect(Array.isArray(policiesOf(snapshot))).toBe(true)
    }),
  )
})
