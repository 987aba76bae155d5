/** The sign-in cookie, written and read back. */
import { expect, test } from 'bun:test'
import { cookieHeader, readCookie } from './cookie.ts'

const token = 'a'.repeat(43)

test('over https the cookie is __Host- and Secure, over plain HTTP neither', () => {
  expect(cookieHeader(token, true, 5_000)).toBe(
    `__Host-sightglass=${token}; Path=/; HttpOnly; SameSite=Lax; Max-Age=5; Secure`,
  )
  expect(cookieHeader(token, false, 5_000)).toBe(
    `sightglass=${token}; Path=/; HttpOnly; SameSite=Lax; Max-Age=5`,
  )
})

test('is read back only under its own name and form', () => {
  expect(readCookie(`x=1; sightglass=${token}`, false)).toBe(token)
  expect(readCookie(`__Host-sightglass=${token}`, true)).toBe(token)
  expect(readCookie(`sightglass=${token}`, true)).toBeNull()
  expect(readCookie(`__Host-sightglass=${token}`, false)).toBeNull()
  for (const bad of [null, '', 'sightglass=', `sightglass=${token}x`, `sightglass=${'%'.repeat(43)}`]) {
    expect(readCookie(bad, false)).toBeNull()
  }
})
