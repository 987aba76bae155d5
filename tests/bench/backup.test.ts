/** Backups stay within bounds that a busy machine meets. */
import { expect, test } from 'bun:test'
import { backupBench, backupTable } from './backup.bench.ts'

test('a backup of 40,000 events delays no commit, and its restore is complete', async () => {
  const measured = await backupBench(40_000)
  const text = backupTable(measured)
  const { before: waitsBefore, during: waitsDuring } = measured
  expect([waitsDuring.commits > 10, text]).toEqual([true, text])
  // Delays that commits have without a backup do not count.
  expect([waitsDuring.maxMs < 4 * waitsBefore.maxMs + 1_000, text]).toEqual([true, text])
  expect([measured.restoreMs + measured.readyMs < 20_000, text]).toEqual([true, text])
  expect(measured.restoredEvents).toBeGreaterThanOrEqual(40_000)
}, 90_000)
