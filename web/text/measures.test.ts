/** DESIGN.md documents the same labels and definitions as the dashboard's measures. */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { measures, pageMeasures } from './measures.ts'
import { routes } from '../routes.ts'

test('the table in DESIGN.md lists every measure with its definition', async () => {
  const text = await Bun.file(join(import.meta.dir, '../DESIGN.md')).text()
  const table = text.slice(text.indexOf('| word '), text.indexOf('- **Activity**'))
  const cells = table
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) => line.split('|').map((cell) => cell.trim()))
  const rows = cells.slice(2).map(([, word, definition]) => [word, definition])
  expect(rows).toEqual(Object.values(measures).map(({ name, definition }) => [name, definition]))
})

test('no label has two meanings, and no event type has two labels', () => {
  const allMeasures = Object.values(measures)
  expect(new Set(allMeasures.map(({ name }) => name)).size).toBe(allMeasures.length)
  const types = allMeasures.flatMap(({ type }) => type ?? [])
  expect(new Set(types).size).toBe(types.length)
})

test('the navigation and the headlines of Analytics count the same types', () => {
  const inNavigation = routes.flatMap(({ counted }) => counted ?? [])
  expect(['unit', ...pageMeasures.map(({ type }) => type)]).toEqual(inNavigation)
})
