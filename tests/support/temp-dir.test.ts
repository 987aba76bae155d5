/** Tests of temporary folders. */
import { expect, test } from 'bun:test'
import { existsSync, statSync, writeFileSync } from 'node:fs'
import { tempDir, tempRoot } from './temp-dir.ts'

test('a folder is private, below the folder of the run, and gone after its block', () => {
  let path = ''
  {
    using dir = tempDir()
    path = dir.path
    writeFileSync(dir.join('file'), 'x')
    expect(path.startsWith(tempRoot())).toBe(true)
    expect(statSync(path).mode & 0o777).toBe(0o700)
  }
  expect(existsSync(path)).toBe(false)
})
