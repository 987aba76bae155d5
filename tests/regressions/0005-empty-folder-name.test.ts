/**
 * An empty folder name, as from an unset variable of a script, is rejected, because it would mean the current folder.
 */
import { expect, test } from 'bun:test'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cli } from '../support/binary.ts'
import { tempDir } from '../support/temp-dir.ts'

test('--data-dir= creates nothing in the current folder', async () => {
  using cwd = tempDir('empty-name')
  const { code, stdout, stderr } = await cli(['serve', '--listen', '127.0.0.1:0', '--data-dir='], {
    cwd: cwd.path,
    timeoutMs: 5_000,
  })
  expect([code, stdout]).toEqual([2, ''])
  expect(stderr).toContain('--data-dir: a folder needs a name')
  expect(readdirSync(cwd.path)).toEqual([])
}, 90_000)

test('an empty data-dir in the options file creates nothing either', async () => {
  using cwd = tempDir('empty-name')
  writeFileSync(join(cwd.path, 'options.toml'), 'data-dir = ""\nlisten = "127.0.0.1:0"\n')
  const { code } = await cli(['serve', '--config', 'options.toml'], { cwd: cwd.path, timeoutMs: 5_000 })
  expect(code).toBe(2)
  expect(readdirSync(cwd.path)).toEqual(['options.toml'])
}, 90_000)
