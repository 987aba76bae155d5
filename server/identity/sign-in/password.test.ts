/** Passwords: the rules, outdated and corrupt hashes, the list of common ones, and the limit under load. */
import { expect, spyOn, test } from 'bun:test'
import { dictionary } from '@zxcvbn-ts/language-common'
import { AppError } from '../../errors.ts'
import list from './common-passwords.txt' with { type: 'text' }
import { checkPasswordRules, hashPassword, needsRehash, verifyPassword } from './password.ts'

function problem(password: string, email = 'ann@example.com'): string | null {
  try {
    checkPasswordRules(password, email)
    return null
  } catch (error) {
    if (error instanceof AppError && error.code === 'invalid_body') return error.details.issues![0]!.code
    throw error
  }
}

test('length counts characters, not bytes', () => {
  expect(problem('sieben7')).toBe('too_short')
  expect(problem('achtung8!')).toBeNull()
  expect(problem('🐙🐙🐙🐙🐙🐙🐙')).toBe('too_short')
  expect(problem('🐙🦑🐙🦑🐙🦑🐙🦑')).toBeNull()
  expect(problem('ab'.repeat(128))).toBeNull()
  expect(problem('a'.repeat(257))).toBe('too_long')
})

test('common passwords are rejected in any case', () => {
  for (const guess of ['password1', 'Password1', '12345678', 'iloveyou', 'aaaaaaaaaaaa', 'SightGlass']) {
    expect([guess, problem(guess)]).toEqual([guess, 'too_guessable'])
  }
  expect(problem('Ann@Example.com')).toBe('too_guessable')
  expect(problem('annabella', 'annabella@example.com')).toBe('too_guessable')
  expect(problem('correct horse battery')).toBeNull()
})

test('the list is the 5,000 most common passwords of the package that are long enough', () => {
  const commonPasswords = dictionary['passwords-common'] as string[]
  const expected = commonPasswords.filter((password) => [...password].length >= 8).slice(0, 5_000)
  expect(list).toBe(`${expected.join('\n')}\n`)
})

test('the same letters are the same password, also for hashes of earlier releases', async () => {
  const composed = 'Cr\u00e8me br\u00fbl\u00e9e f\u00fcr 2'
  const decomposed = composed.normalize('NFD')
  const spellings = [composed, decomposed, composed.replaceAll(' ', '\u00a0'), `${composed}\n`]
  for (const spelling of spellings) {
    const hash = await hashPassword(spelling)
    for (const typed of spellings) expect(await verifyPassword(typed, hash)).toBe(true)
    expect(await verifyPassword('Creme brulee fur 2', hash)).toBe(false)
  }
  const earlier = await Bun.password.hash(decomposed, {
    algorithm: 'argon2id',
    memoryCost: 47_104,
    timeCost: 2,
  })
  for (const typed of [composed, decomposed]) expect(await verifyPassword(typed, earlier)).toBe(true)
  expect(await verifyPassword('Creme brulee fur 2', earlier)).toBe(false)
})

test('a hash verifies its password and no other; garbage is wrong, not an error', async () => {
  const hash = await hashPassword('correct horse battery')
  expect(hash).toStartWith('$argon2id$v=19$m=47104,t=2,p=1$')
  expect(await verifyPassword('correct horse battery', hash)).toBe(true)
  expect(await verifyPassword('correct horse batterz', hash)).toBe(false)
  for (const wrong of [
    '',
    'garbage',
    '$argon2id$v=19$m=47104,t=2,p=1$',
    hash.slice(0, -5),
    '$2b$10$x',
    '\u0000',
  ]) {
    expect(await verifyPassword('correct horse battery', wrong)).toBe(false)
  }
  expect(await verifyPassword('', hash)).toBe(false)
  expect(await verifyPassword('x'.repeat(100_000), hash)).toBe(false)
  expect(needsRehash(hash)).toBe(false)
  expect(
    needsRehash(await Bun.password.hash('x', { algorithm: 'argon2id', memoryCost: 1024, timeCost: 1 })),
  ).toBe(true)
})

test('an unknown account costs the work of a wrong password', async () => {
  const knownHash = await hashPassword('correct horse battery')
  expect(await verifyPassword('wrong horse battery', null)).toBe(false) // makes the dummy
  using verify = spyOn(Bun.password, 'verify')
  for (const hash of [knownHash, null]) expect(await verifyPassword('wrong horse battery', hash)).toBe(false)
  const [ofKnown, ofDummy] = verify.mock.calls.map(([password, hash]) => [password, String(hash).split('$')])
  const costs = ['', 'argon2id', 'v=19', 'm=47104,t=2,p=1', expect.any(String), expect.any(String)]
  expect(ofKnown).toEqual(['wrong horse battery', costs])
  expect(ofDummy).toEqual(['wrong horse battery', costs])
  expect(verify).toHaveBeenCalledTimes(2)
})

test('with three unknown senders hashing and 32 waiting, others get 503', async () => {
  let inFlight = 0
  let inFlightMax = 0
  const counted = async <T>(result: T): Promise<T> => {
    inFlightMax = Math.max(inFlightMax, ++inFlight)
    await Bun.sleep(1)
    inFlight--
    return result
  }
  using _verify = spyOn(Bun.password, 'verify').mockImplementation(() => counted(false))
  using _hash = spyOn(Bun.password, 'hash').mockImplementation(() => counted('$argon2id'))
  const outcomes = await Promise.allSettled(
    Array.from({ length: 40 }, () => verifyPassword('a guess of many', null)),
  )
  expect(inFlightMax).toBe(3)
  const refused = outcomes.filter(({ status }) => status === 'rejected') as PromiseRejectedResult[]
  expect(refused).toHaveLength(5)
  for (const { reason } of refused) {
    expect(reason).toBeInstanceOf(AppError)
    expect(reason).toMatchObject({ code: 'rate_limited', details: { headers: { 'retry-after': '2' } } })
  }
  // Neither a person who signed in from there before nor a new password waits in that crowd.
  const crowd = Array.from({ length: 40 }, () => verifyPassword('a guess of many', null).catch(() => null))
  const hash = hashPassword('a window in a vessel')
  const guesses = Array.from({ length: 20 }, () => verifyPassword('a guess of many', null, 'known'))
  expect(await Promise.all(guesses)).toEqual(Array<boolean>(20).fill(false))
  expect(await hash).toBe('$argon2id')
  await Promise.all(crowd)
  expect(inFlightMax).toBe(4)
  // Every caller left its slot.
  expect(await verifyPassword('a guess of many', null)).toBe(false)
})
