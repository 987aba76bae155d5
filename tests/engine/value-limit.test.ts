/** A breakdown beyond its value limit: the most frequent values by name, the others as one, none lost. */
import { expect, test } from 'bun:test'
import { noon } from '../store/make.ts'
import { engine, event } from './subject.ts'

test('beyond 1,000 values of a step the rarest count as one', () => {
  const subject = engine()
  const events = Array.from({ length: 6_000 }, (_, n) => {
    const value = n < 3_000 ? n % 1_500 : n % 500 // the first 500 are the most frequent
    return { ...event(n, 0), vendor: `vendor ${value}` }
  })
  subject.group(() => subject.append('org_a', events))
  const query = {
    orgId: 'org_a',
    sinceMs: noon - 3_600_000,
    untilMs: null,
    by: 'vendor',
    stepMs: null,
  } as const
  for (const fold of [false, true]) {
    if (fold) subject.idle()
    const { rows } = subject.reader.breakdown(query)
    const valueNames = new Set(rows.flatMap(({ value }) => (value === null ? [] : [value])))
    expect(valueNames.size).toBe(1_000)
    expect([...Array(500).keys()].every((n) => valueNames.has(`vendor ${n}`))).toBe(true)
    expect(rows.reduce((sum, { count }) => sum + count, 0)).toBe(6_000)
    const unnamedRows = rows.filter(({ value }) => value === null)
    expect(unnamedRows.reduce((sum, { count }) => sum + count, 0)).toBe(1_000)
    expect(unnamedRows.map(({ outcome }) => outcome).sort()).toEqual(['blocked', 'success'])
  }
  subject.close()
}, 90_000)
