/** Views that a browser stored before views were shared: any text is read, and each view is imported once. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { importable, readLocalViews, viewNameCharsMax } from './saved-views.ts'

test('any stored text is read without an error', () => {
  expect(readLocalViews('[{"name":"a","search":"?type=x"},{"name":1},7,{"name":" ","search":""}]')).toEqual([
    { name: 'a', search: '?type=x' },
  ])
  fc.assert(
    fc.property(fc.oneof(fc.json(), fc.string()), (text) =>
      expect(Array.isArray(readLocalViews(text))).toBe(true),
    ),
  )
})

test('an import adds each view once, under an unused name of valid length', () => {
  const shared = [{ name: 'a', search: '?type=x' }]
  const local = [
    { name: 'a', search: '?type=x' }, // exists already
    { name: 'a', search: '?type=y' },
    { name: ' b ', search: '' },
    { name: 'b', search: '?q=2' },
  ]
  expect(importable(local, shared)).toEqual([
    { name: 'a (2)', search: '?type=y' },
    { name: 'b', search: '' },
    { name: 'b (2)', search: '?q=2' },
  ])
  const long = 'ü'.repeat(200)
  const names = importable(
    [
      { name: long, search: '' },
      { name: long, search: '?q=1' },
    ],
    [],
  )
  expect(names.map(({ name }) => [...name].length).every((chars) => chars <= viewNameCharsMax)).toBe(true)
  expect(new Set(names.map(({ name }) => name)).size).toBe(2)
})
