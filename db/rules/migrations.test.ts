/** Checks which migrations run for which schema version. */
import { expect, test } from 'bun:test'
import { pendingMigrations, withVersions, type Migration } from './migrations.ts'

const knownMigrations: Migration[] = [1, 2, 3].map((version) => ({ version, name: `000${version}`, sql: '' }))

test('migrations above the applied version are pending, in order', () => {
  expect(pendingMigrations(0, knownMigrations)).toEqual(knownMigrations)
  expect(pendingMigrations(2, knownMigrations).map(({ version }) => version)).toEqual([3])
  expect(pendingMigrations(3, knownMigrations)).toEqual([])
})

test('a version above the known ones is rejected', () => {
  expect(() => pendingMigrations(4, knownMigrations)).toThrow('use a newer release')
})

test('a gap or a wrong order in the list is an internal error', () => {
  expect(() => pendingMigrations(0, knownMigrations.slice(1))).toThrow('out of order')
})

test('a migration has the version of its name', () => {
  const [first, second] = withVersions([
    { name: '0001_identity', sql: 'a' },
    { name: '0012_share_links', sql: 'b' },
  ])
  expect([first?.version, second?.version]).toEqual([1, 12])
})
