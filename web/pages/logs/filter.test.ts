/** Filters are read completely from the URL, and the offered choices exist. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { TraceEvent } from '../../api/api.ts'
import {
  exportHref,
  filterOf,
  isOpen,
  isSearch,
  isTypeFilter,
  outcomeChoices,
  seenValues,
  typeChoices,
  viewSearch,
} from './filter.ts'

describe('filterOf', () => {
  test('reads repeated values once and skips empty ones', () => {
    const filter = filterOf(
      new URLSearchParams('?type=authz.*&type=authz.*&type=&outcome=blocked&outcome=error'),
    )
    expect(filter).toEqual({ types: ['authz.*'], outcomes: ['blocked', 'error'] })
    expect(isOpen(filter)).toBe(false)
    expect(isOpen(filterOf(new URLSearchParams('?event=evt_1')))).toBe(true)
    const vendor = filterOf(new URLSearchParams('?vendor=A&vendor=B&vendor=A&since=2026-11-01&q=x'))
    expect(vendor.where).toEqual([
      { name: 'vendor', value: 'A' },
      { name: 'vendor', value: 'B' },
      { name: 'since', value: '2026-11-01' },
      { name: 'q', value: 'x' },
    ])
    expect(isSearch(vendor)).toBe(true)
    expect(isOpen(filterOf(new URLSearchParams('?q=x')))).toBe(true) // a search requires a start
    expect(isOpen(vendor)).toBe(false)
  })
})

describe('typeChoices', () => {
  test('offers a prefix only for several types, with their sum', () => {
    const byType = { 'authz.evaluated': 7, 'authz.policies_set': 1, 'agent.detected': 3, ping: 2 }
    expect(typeChoices(byType, ['tool.*', 'ping'])).toEqual([
      { value: 'agent.detected', count: 3 },
      { value: 'authz.*', count: 8 },
      { value: 'authz.evaluated', count: 7 },
      { value: 'authz.policies_set', count: 1 },
      { value: 'ping', count: 2 },
      { value: 'tool.*', count: null },
    ])
  })
})

test('outcomeChoices lists the known outcomes first and each once', () => {
  const values = outcomeChoices(['timeout', 'success', 'aborted'], ['odd']).map((choice) => choice.value)
  expect(values).toEqual(['success', 'blocked', 'error', 'aborted', 'timeout', 'odd'])
})

test('isTypeFilter accepts the same filters as the server', () => {
  for (const good of ['agent.detected', 'authz.*', 'a', 'a-b_c.d.*']) expect(isTypeFilter(good)).toBe(true)
  for (const bad of ['', '*', 'A.b', 'a..b', 'a.', 'a*', 'a b', `a${'b'.repeat(70)}`])
    expect(isTypeFilter(bad)).toBe(false)
})

test('a view contains only the filters of a URL and selects the same events', () => {
  const text = fc.string({ minLength: 1, maxLength: 12, unit: 'grapheme' })
  fc.assert(
    fc.property(fc.array(text, { maxLength: 3 }), text, (vendors, q) => {
      const params = new URLSearchParams({
        event: 'evt_1',
        range: '7d',
        type: 'authz.*',
        since: '2026-11-01',
        q,
      })
      for (const vendor of vendors) params.append('vendor', vendor)
      const view = viewSearch(`?${params}`)
      expect(filterOf(new URLSearchParams(view))).toEqual(filterOf(params))
      expect(view).not.toContain('evt_1')
      expect(viewSearch(view)).toBe(view)
    }),
  )
  expect(viewSearch('?event=evt_1')).toBe('')
  expect(exportHref(new URLSearchParams('?tool=a&event=x'), 'csv')).toBe(
    '/api/export/events?tool=a&format=csv',
  )
})

test('suggestions are the values of the rows, each once', () => {
  const rows = ['b', 'a', 'b', null].map((vendor) => ({
    event: { agent: { vendor }, siteId: 's' } as unknown as TraceEvent,
  }))
  expect(seenValues(rows, 'vendor')).toEqual(['a', 'b'])
  expect(seenValues(rows, 'siteId')).toEqual(['s'])
  expect(seenValues(rows, 'protocol')).toEqual([])
})
