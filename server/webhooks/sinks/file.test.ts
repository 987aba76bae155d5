/** File sinks append whole lines, end an incomplete one, and never follow a link out of their folder. */
import { expect, test } from 'bun:test'
import { appendFileSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { appendLines } from './file.ts'

const codeOf = (work: Promise<void>) =>
  work.then(
    () => 'done',
    (error: { code: string }) => error.code,
  )

test('appends lines, creates folders, and keeps files private', async () => {
  using sinks = tempDir('sinks')
  await appendLines(sinks.path, 'a/b/events.ndjson', ['{"n":1}', '{"n":2}'])
  await appendLines(sinks.path, 'a/b/events.ndjson', ['{"n":3}'])
  expect(readFileSync(sinks.join('a/b/events.ndjson'), 'utf8')).toBe('{"n":1}\n{"n":2}\n{"n":3}\n')
  expect(statSync(sinks.join('a/b/events.ndjson')).mode & 0o777).toBe(0o600)
})

test('an incomplete line after a crash does not corrupt the next one', async () => {
  using sinks = tempDir('sinks')
  appendFileSync(sinks.join('x.ndjson'), '{"n":1}\n{"n":')
  await appendLines(sinks.path, 'x.ndjson', ['{"n":2}'])
  expect(readFileSync(sinks.join('x.ndjson'), 'utf8')).toBe('{"n":1}\n{"n":\n{"n":2}\n')
})

test('symbolic links in the path are refused, and their targets stay unchanged', async () => {
  using sinks = tempDir('sinks')
  using outside = tempDir('outside')
  symlinkSync(outside.path, sinks.join('folder'))
  symlinkSync(outside.join('target'), sinks.join('file.ndjson'))
  mkdirSync(sinks.join('real'))
  expect(await codeOf(appendLines(sinks.path, 'folder/x.ndjson', ['{}']))).toBe('ELOOP')
  expect(await codeOf(appendLines(sinks.path, 'file.ndjson', ['{}']))).toBe('ELOOP')
  expect(existsSync(outside.join('target'))).toBe(false)
  expect(await codeOf(appendLines(sinks.join('none'), 'x.ndjson', ['{}']))).toBe('ENOENT')
})

test('concurrent appends neither mix nor reorder', async () => {
  using sinks = tempDir('sinks')
  const lines = Array.from({ length: 8 }, (_, n) => JSON.stringify({ n, text: String(n).repeat(700_000) }))
  await Promise.all(lines.map((line) => appendLines(sinks.path, 'x.ndjson', [line])))
  expect(readFileSync(sinks.join('x.ndjson'), 'utf8').trimEnd().split('\n')).toEqual(lines)
})
