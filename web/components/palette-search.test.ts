/** What the palette finds stands in a sensible order, once each, whatever the names are. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { bestOf, type Command, joined, matches, rank } from './palette-search.ts'

const command = (name: string, kind = 'Vendor', events = 0): Command => ({
  name,
  kind,
  events,
  run: () => {},
})

test('a beginning comes before a word, a word before a part; the more frequent first among equals', () => {
  const all = ['cart.add', 'add', 'padding', 'addition'].map((name, n) => command(name, 'Tool', n))
  expect(bestOf(all, 'ADD').map(({ name }) => name)).toEqual(['addition', 'add', 'cart.add', 'padding'])
  expect(bestOf(all, 'nothing')).toEqual([])
})

test('of each kind at most six, so that one kind does not push out the others', () => {
  const many = Array.from({ length: 50 }, (_, n) => command(`bot ${n}`))
  expect(bestOf([...many, command('bot.run', 'Tool')], 'bot')).toHaveLength(7)
})

test('any text may be typed and be a name', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (name, typed) => {
      const found = rank(`${name}${typed}`, typed)
      if (typed.trim() !== '' && typed === typed.trim()) expect(found).toBeGreaterThan(0)
      expect(matches(`${typed}${name}`, typed)).toBe(true)
    }),
  )
  expect(rank('ΟΔΟΣ 7', 'ΟΔΟΣ')).toBe(3)
})

test('a registered tool that is called stands once, and leads to its own page', () => {
  const [called, registered] = [command('pay', 'Tool', 7), command('pay', 'Tool', Number.MAX_SAFE_INTEGER)]
  expect(joined([called, registered])).toEqual([registered])
  expect(joined([registered, called])).toEqual([registered])
  expect(joined([called, command('pay', 'Vendor')])).toHaveLength(2)
})
