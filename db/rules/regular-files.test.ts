/** What is no file is refused by its kind and never waited for; regular files are read, through links if asked. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { tempDir } from '../../tests/support/temp-dir.ts'
import { openRegularFile, readTextFile, unreadableReason } from './regular-files.ts'

const temp = tempDir('regular-files')

beforeAll(() => {
  writeFileSync(temp.join('file'), '\ufeffwords')
  symlinkSync(temp.join('file'), temp.join('link'))
  symlinkSync('/dev/zero', temp.join('zero'))
  mkdirSync(temp.join('folder'))
  expect(Bun.spawnSync(['mkfifo', temp.join('pipe')]).exitCode).toBe(0)
})
afterAll(() => temp.remove())

function readReason(path: string): string {
  try {
    return readTextFile(path)
  } catch (error) {
    return unreadableReason(error)
  }
}

async function openReason(path: string, follows: boolean): Promise<string> {
  try {
    const file = await openRegularFile(path, { follows })
    const text = await file.readFile('utf8')
    await file.close()
    return text
  } catch (error) {
    return unreadableReason(error)
  }
}

test.each([
  ['pipe', 'it is a named pipe, not a file'],
  ['folder', 'it is a folder, not a file'],
  ['zero', 'it is a device, not a file'],
  ['missing', 'ENOENT'],
])('a %s is refused at once', async (name, reason) => {
  expect(readReason(temp.join(name))).toBe(reason)
  expect(await openReason(temp.join(name), true)).toBe(reason)
})

test('a link is followed only where that is asked for', async () => {
  expect(readReason(temp.join('link'))).toBe('words')
  expect(await openReason(temp.join('link'), true)).toBe('\ufeffwords')
  expect(await openReason(temp.join('link'), false)).toBe('ELOOP')
})
