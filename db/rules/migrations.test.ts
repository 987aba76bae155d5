/** Checks which migrations run for which schema version. */
import { expect, test } from 'bun:test'
import { pendingMigrations, type Migration } from './migrations.ts'

const known: Migration[] = [1, 2, 3].map((version) => ({ version, name: `000${version}`, sql: '' }))

test('what is above the applied version is pending, in order', () => {
  expect(pendingMigrations(0, known)).toEqual(known)
  expect(pendingMigrations(2, known).map(({ version }) => version)).toEqual([3])
  expect(pendingMigrations(3, known)).toEqual([])
})

test('a version above the known ones is refused', () => {
  expect(() => pendingMigrations(4, known)).toThrow('use a newer release')
})

test('a gap or a wrong order among our own is a fault of ours', () => {
  expect(() => pendingMigrations(0, known.slice(1))).toThrow('out of order')
})
