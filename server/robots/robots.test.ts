/** Tests the lines by which two texts differ: applying them to the old text gives the new one. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { lineChanges } from './robots.ts'

test('lines that were added and removed, in order', () => {
  const textBefore = 'User-agent: *\nDisallow: /a\nDisallow: /b\n'
  const textAfter = 'User-agent: *\r\nAllow: /a/x\r\nDisallow: /a\r\n'
  expect(lineChanges(textBefore, textAfter)).toEqual({
    added: 1,
    removed: 1,
    list: [
      { kind: 'added', line: 2, text: 'Allow: /a/x' },
      { kind: 'removed', line: 3, text: 'Disallow: /b' },
    ],
  })
  expect(lineChanges(textBefore, textBefore)).toEqual({ added: 0, removed: 0, list: [] })
})

test('removing and adding the listed lines turns one text into the other', () => {
  const texts = fc.array(fc.constantFrom('a', 'b', 'c', ''), { minLength: 1, maxLength: 12 })
  fc.assert(
    fc.property(texts, texts, (linesBefore, linesAfter) => {
      const old = `${linesBefore.join('\n')}\n`
      const now = `${linesAfter.join('\n')}\n`
      const { list } = lineChanges(old, now)
      const removed = new Set(list.flatMap(({ kind, line }) => (kind === 'removed' ? [line] : [])))
      const lines: string[] = linesBefore.filter((_, index) => !removed.has(index + 1))
      for (const { kind, line, text } of list) if (kind === 'added') lines.splice(line - 1, 0, text)
      expect(lines).toEqual(linesAfter)
    }),
  )
})

test('large texts are compared in bounded time and shown in part', () => {
  const lines = (prefix: string) => Array.from({ length: 60_000 }, (_, n) => `${prefix}${n}`)
  const changes = lineChanges(['same', ...lines('a')].join('\n'), ['same', ...lines('b')].join('\n'))
  expect([changes.added, changes.removed, changes.list.length]).toEqual([60_000, 60_000, 500])
  expect(lineChanges('', 'x'.repeat(9_000)).list.at(-1)!.text.length).toBe(500)
})
