/** The changes of an audit entry, and the query of a filter. */
import { expect, test } from 'bun:test'
import { dayStart, isoTime } from '../../../app/clock.ts'
import { differences, facts, filterBody, filterParams, noFilter } from './audit.tsx'

test('only changed fields are listed, with “none” for missing ones', () => {
  const metadata = {
    label: 'x',
    before: { name: null, hidden: false, sites: ['a'] },
    after: { name: 'Shop', hidden: false, sites: ['a', 'b'], extra: 1 },
  }
  expect(differences(metadata)).toEqual([
    { name: 'name', before: 'none', after: 'Shop' },
    { name: 'sites', before: '["a"]', after: '["a","b"]' },
    { name: 'extra', before: 'none', after: '1' },
  ])
  expect(facts(metadata)).toEqual([{ name: 'label', value: 'x' }])
  expect(differences({ before: 'text', after: ['list'] })).toEqual([])
})

test('an empty filter matches everything, and the last day is included whole', () => {
  expect(filterBody(noFilter)).toEqual({})
  const [start, end] = ['2026-06-01', '2026-07-01'].map((day) => isoTime(dayStart(day) ?? 0)) as [
    string,
    string,
  ]
  expect(`${filterParams({ q: 'a b', action: 'site.*', since: '2026-06-01', until: '2026-06-30' })}`).toBe(
    `q=a+b&action=site.*&since=${encodeURIComponent(start)}&until=${encodeURIComponent(end)}`,
  )
})
