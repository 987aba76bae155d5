/** The differences between versions turn one value into the other and are empty for equal values. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { limits } from '../../limits.ts'
import { differences, type Difference } from './record.ts'

/** Applies a difference to `value`. */
function apply(value: unknown, { path, change, after: nextValue }: Difference): unknown {
  if (path === '') return nextValue
  const [first = '', ...segments] = path
    .slice(1)
    .split('/')
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
  const copy = (Array.isArray(value) ? [...(value as unknown[])] : { ...(value as object) }) as {
    [name: string]: unknown
  }
  const inner = segments.map((part) => part.replaceAll('~', '~0').replaceAll('/', '~1'))
  if (segments.length > 0)
    copy[first] = apply(copy[first], { path: `/${inner.join('/')}`, change, after: nextValue })
  else if (change !== 'removed')
    Object.defineProperty(copy, first, {
      value: nextValue,
      enumerable: true,
      configurable: true,
      writable: true,
    })
  else if (Array.isArray(copy)) copy.length = Math.min(copy.length, Number(first))
  else delete copy[first]
  return copy
}

test('the differences turn the old value into the new one', () => {
  const json = fc.jsonValue({ maxDepth: 3 })
  fc.assert(
    fc.property(json, json, (valueBefore, valueAfter) => {
      const diffs = differences(valueBefore, valueAfter)
      fc.pre(diffs.length < limits.differencesMax)
      const changed = diffs
        .toSorted((a) => (a.change === 'removed' ? 1 : -1))
        .reduce(apply, valueBefore as unknown)
      expect(JSON.stringify(differences(changed, valueAfter))).toBe('[]')
    }),
  )
})

test('equal values have no differences in any field order; long values are omitted', () => {
  expect(differences({ a: 1, b: [{ c: 2 }] }, { b: [{ c: 2.0 }], a: 1 })).toEqual([])
  const long = 'x'.repeat(limits.differenceCharsMax)
  expect(differences({ a: long }, { a: 1 })).toEqual([{ path: '/a', change: 'changed', after: 1 }])
  const manyMembers = Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`m${n}`, n]))
  expect(differences({}, manyMembers).length).toBe(limits.differencesMax)
})
