/** Palette results are ranked and unique, for any names. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { bestOf, type Command, merged, matches, rank } from './palette.tsx'

const command = (name: string, kind = 'Vendor', events = 0): Command => ({
  name,
  kind,
  events,
  run: () => {},
})

test('name prefixes rank before word prefixes, these before substrings; then by number of events', () => {
  const commands = ['cart.add', 'add', 'padding', 'addition'].map((name, n) => command(name, 'Tool', n))
  expect(bestOf(commands, 'ADD').map(({ name }) => name)).toEqual(['addition', 'add', 'cart.add', 'padding'])
  expect(bestOf(commands, 'nothing')).toEqual([])
})

test('at most six results per kind, so that one kind does not displace the others', () => {
  const manyCommands = Array.from({ length: 50 }, (_, n) => command(`bot ${n}`))
  expect(bestOf([...manyCommands, command('bot.run', 'Tool')], 'bot')).toHaveLength(7)
})

test('any text can be a query and a name', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (name, typed) => {
      const rankValue = rank(`${name}${typed}`, typed)
      if (typed.trim() !== '' && typed === typed.trim()) expect(rankValue).toBeGreaterThan(0)
      expect(matches(`${typed}${name}`, typed)).toBe(true)
    }),
  )
  expect(rank('ΟΔΟΣ 7', 'ΟΔΟΣ')).toBe(3)
})

test('a registered tool that is also called appears once and opens its own page', () => {
  const toolUrl = command('pay', 'Tool', 7)
  const registered = command('pay', 'Tool', Number.MAX_SAFE_INTEGER)
  expect(merged([toolUrl, registered])).toEqual([registered])
  expect(merged([registered, toolUrl])).toEqual([registered])
  expect(merged([toolUrl, command('pay', 'Vendor')])).toHaveLength(2)
})
