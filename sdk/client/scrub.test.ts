/** Scrubbing removes every secret, changes nothing else, and cannot hang the host. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { quickestMs } from '../../tests/support/quickest.ts'
import { createScrub } from './scrub.ts'

const scrub = createScrub()

test.each([
  'password',
  'Password',
  'userPassword',
  'DB_PASSWORD',
  'token',
  'accessToken',
  'x-auth-token',
  'csrf.token',
  'authorization',
  'Authorization',
  'proxy-authorization',
  'cookie',
  'set-cookie',
  'sessionCookie',
  'clientSecret',
  'passphrase',
])('%s is scrubbed at any depth', (name) => {
  expect(scrub({ metadata: { args: [{ [name]: 'hunter2' }] } })).toEqual({
    metadata: { args: [{ [name]: '[scrubbed]' }] },
  })
  expect(scrub<unknown>({ [name]: { nested: 'hunter2' } })).toEqual({ [name]: '[scrubbed]' })
})

test.each(['tokens', 'tokenized', 'authorizedBy', 'cookieless', 'page', 'secretary', 'compassword'])(
  '%s is not scrubbed',
  (name) => {
    const event = { metadata: { [name]: 'kept' } }
    expect(scrub(event)).toBe(event)
  },
)

test('numbers are secret only under the exact word; booleans and null never are', () => {
  expect(scrub({ tokenCount: 5, password: 1234, token: true, cookie: null })).toEqual({
    tokenCount: 5,
    password: '[scrubbed]',
    token: true,
    cookie: null,
  } as never)
})

test('custom names and paths match at any depth and through arrays', () => {
  const customScrub = createScrub(['ssn', 'card.number'])
  const event = {
    ssn: '1',
    a: { cards: [{ number: 'kept' }], card: [{ number: '4111', month: 1 }] },
    number: 'kept',
  }
  expect(customScrub(event)).toEqual({
    ssn: '[scrubbed]',
    a: { cards: [{ number: 'kept' }], card: [{ number: '[scrubbed]', month: 1 }] },
    number: 'kept',
  })
})

test('the object of the host never changes', () => {
  const event = { metadata: { token: 'abc', deep: { password: 'x' } } }
  const copy = structuredClone(event)
  scrub(event)
  expect(event).toEqual(copy)
})

test('the result of toJSON is scrubbed', () => {
  const event = { user: { toJSON: () => ({ password: 'hunter2' }) }, at: new Date(0) }
  expect(JSON.stringify(scrub(event))).toBe(
    '{"user":{"password":"[scrubbed]"},"at":"1970-01-01T00:00:00.000Z"}',
  )
})

test('cycles, depth and size throw a readable error, quickly', async () => {
  const circle: { self?: unknown } = {}
  circle.self = { circle }
  expect(() => scrub(circle)).toThrow('is cyclic')
  const wide: { left?: unknown; right?: unknown } = {}
  Object.assign(wide, { left: wide, right: wide })
  expect(() => scrub(wide)).toThrow()
  let deep: object = {}
  for (let level = 1; level < 32; level++) deep = { deep }
  expect(scrub(deep)).toBe(deep)
  expect(() => scrub({ deep })).toThrow('deeper than 32')
  let shared: object = { end: 1 }
  for (let level = 0; level < 28; level++) shared = { left: shared, right: shared }
  const wideList = Array.from({ length: 50_001 }, () => 0)
  const refuse = (bomb: object) => () => expect(() => scrub(bomb)).toThrow('fields')
  const listMs = await quickestMs(refuse(wideList))
  expect(await quickestMs(refuse(shared))).toBeLessThan(20 * listMs + 20)
})

test('law: no planted secret remains, and events without one are returned unchanged', () => {
  const names = fc.constantFrom(
    'password',
    'authToken',
    'set-cookie',
    'Authorization',
    'page',
    'tokens',
    'note',
  )
  const tree = fc.letrec((tie) => ({
    node: fc.oneof(
      { maxDepth: 6 },
      fc.constant('SECRET'),
      fc.array(tie('node'), { maxLength: 4 }),
      fc.dictionary(names, tie('node'), { maxKeys: 4 }),
    ),
  })).node
  const hides = (value: unknown, isHidden: boolean): boolean => {
    if (typeof value === 'string') return isHidden
    if (typeof value !== 'object' || value === null) return false
    return Object.entries(value).some(([name, member]) =>
      hides(
        member,
        !Array.isArray(value) && ['password', 'authToken', 'set-cookie', 'Authorization'].includes(name),
      ),
    )
  }
  fc.assert(
    fc.property(tree, (value) => {
      const result = scrub(value)
      const strip = (text: string): string => text.replaceAll('[scrubbed]', '')
      expect(JSON.stringify(scrub(result))).toBe(JSON.stringify(result)) // doing it twice changes nothing
      const pairs = [
        ...strip(JSON.stringify(result)).matchAll(/"(password|authToken|set-cookie|Authorization)":(.)(.)/g),
      ]
      for (const pair of pairs) expect(`${pair[2]}${pair[3]}`).toBe('""')
      if (!hides(value, false) && pairs.length === 0) expect(result).toBe(value)
    }),
    { numRuns: 300 },
  )
})
