/** The probe counts its syncs, leaves no file behind, and tolerates a folder it cannot write to. */
import { expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { tempDir } from '../../tests/support/temp-dir.ts'
import { probeFsync } from './disk.ts'

const total = (counts: number[]) => counts.reduce((sum, count) => sum + count, 0)

test('each check is one write and fsync in an unlinked file', async () => {
  using dir = tempDir('probe')
  const probe = await probeFsync(dir.path)
  expect(total(probe.times().counts)).toBe(0)
  for (let n = 0; n < 3; n++) await probe.check()
  expect(total(probe.times().counts)).toBe(3)
  expect(probe.times().sumMs).toBeGreaterThan(0)
  expect(readdirSync(dir.path)).toEqual([])
  await probe.close()
})

test('counts nothing where it cannot create a file', async () => {
  using dir = tempDir('probe')
  const probe = await probeFsync(dir.join('missing'))
  await probe.check()
  expect(total(probe.times().counts)).toBe(0)
  await probe.close()
})
