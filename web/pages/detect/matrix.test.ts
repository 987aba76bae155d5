/** The columns of the table of classes by vendor. */
import { expect, test } from 'bun:test'
import { matrixOf } from './matrix.tsx'

const countedName = (name: string) => ({ name })

test('columns: known classes, the largest others, the rest as one, then no class', () => {
  const strange = Array.from({ length: 10 }, (_, n) => ({
    class: countedName(`strange ${n}`),
    vendor: countedName('GPTBot'),
    count: 100 - n,
  }))
  const { rows, columns } = matrixOf([
    { class: 'missing', vendor: 'missing', count: 3 },
    ...strange,
    { class: countedName('dom'), vendor: countedName('GPTBot'), count: 1 },
    { class: countedName('crawler'), vendor: 'other', count: 2 },
  ])
  expect(
    columns.map(({ of: agentClass }) => (typeof agentClass === 'string' ? agentClass : agentClass.name)),
  ).toEqual(['crawler', 'dom', ...Array.from({ length: 6 }, (_, n) => `strange ${n}`), 'other', 'missing'])
  expect(rows.map(({ total }) => total)).toEqual([3, 955 + 1, 2])
  expect(rows[1]!.byClass.get('other')).toBe(94 + 93 + 92 + 91)
  for (const row of rows) expect([...row.byClass.values()].reduce((a, b) => a + b)).toBe(row.total)
})

test('columns without events are omitted', () => {
  const { columns } = matrixOf([{ class: countedName('dom'), vendor: countedName('A'), count: 1 }])
  expect(columns.map(({ of: agentClass }) => agentClass)).toEqual([countedName('dom')])
})
