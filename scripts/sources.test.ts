/** Staleness: a changed, added or deleted source makes the build stale, a changed test does not. */
import { expect, test } from 'bun:test'
import { mkdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tempDir } from '../tests/support/temp-dir.ts'
import { newestMtimeMs } from './sources.ts'

test('the newest file below the given paths decides; missing paths count as never', () => {
  using dir = tempDir()
  mkdirSync(dir.join('server'))
  for (const name of ['a.ts', 'b.ts', 'b.test.ts']) writeFileSync(dir.join('server', name), '')
  utimesSync(dir.join('server/a.ts'), 1_000, 1_000)
  utimesSync(dir.join('server/b.ts'), 2_000, 2_000)
  utimesSync(dir.join('server/b.test.ts'), 9_000, 9_000)
  utimesSync(dir.join('server'), 1_500, 1_500)
  const paths = [dir.join('server'), dir.join('absent')]
  expect(newestMtimeMs(paths)).toBe(2_000_000)
  rmSync(dir.join('server/a.ts')) // changes the modification time of the folder
  expect(newestMtimeMs(paths)).toBeGreaterThan(2_000_000)
  expect(newestMtimeMs([dir.join('absent')])).toBe(0)
})
