/** URL helpers: the query survives changes, and sign-in never redirects to another host. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { safeReturn, withQuery } from './router.ts'

describe('withQuery', () => {
  test('sets, repeats and removes fields and keeps the others', () => {
    expect(withQuery('?type=a&event=e1', { type: ['authz.*', 'x'] })).toBe('?event=e1&type=authz.*&type=x')
    expect(withQuery('?type=a', { type: [] })).toBe('')
  })

  test('law: returns exactly the values that were set', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme' })), (values) => {
        const search = withQuery('?keep=1', { type: values })
        const back = new URLSearchParams(search)
        expect(back.getAll('type')).toEqual(values)
        expect(back.get('keep')).toBe('1')
      }),
    )
  })
})

describe('safeReturn', () => {
  test('keeps a path with its query', () => {
    expect(safeReturn('/logs?type=authz.*&outcome=blocked')).toBe('/logs?type=authz.*&outcome=blocked')
  })

  test.each([
    '//evil.example/x',
    '/\\evil.example',
    'https://evil.example',
    'javascript:alert(1)',
    '',
    '/\t/evil.example',
    '/.//evil.example',
    '/a/..//evil.example',
    '/..\\/evil.example',
  ])('refuses %j', (to) => expect(safeReturn(to)).toBe('/'))

  test('never returns to the sign-in page, and defaults to the start page', () => {
    expect(safeReturn('/sign-in?to=/logs')).toBe('/')
    expect(safeReturn(null)).toBe('/')
  })

  test('law: the result resolves to the own origin', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const back = new URL(safeReturn(`/${text}`), 'https://ours.example')
        expect(back.origin).toBe('https://ours.example')
      }),
    )
  })
})
