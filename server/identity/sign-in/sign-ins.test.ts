/** The sign-in cookie, written and read back. */
import { expect, test } from 'bun:test'
import { cookieHeader, readCookie } from './sign-ins.ts'

const token = 'a'.repeat(43)
const https = { secure: true, basePath: '' }
const plain = { secure: false, basePath: '' }

test('over https the cookie is __Host- and Secure, over plain HTTP neither', () => {
  expect(cookieHeader(token, https, 5_000)).toBe(
    `__Host-sightglass=${token}; Path=/; HttpOnly; SameSite=Lax; Max-Age=5; Secure`,
  )
  expect(cookieHeader(token, plain, 5_000)).toBe(
    `sightglass=${token}; Path=/; HttpOnly; SameSite=Lax; Max-Age=5`,
  )
})

test('the cookie is read only under its own name and format', () => {
  expect(readCookie(`x=1; sightglass=${token}`, plain)).toBe(token)
  expect(readCookie(`__Host-sightglass=${token}`, https)).toBe(token)
  expect(readCookie(`sightglass=${token}`, https)).toBeNull()
  expect(readCookie(`__Host-sightglass=${token}`, plain)).toBeNull()
  for (const bad of [null, '', 'sightglass=', `sightglass=${token}x`, `sightglass=${'%'.repeat(43)}`]) {
    expect(readCookie(bad, plain)).toBeNull()
  }
})

test('with a base path the cookie is limited to it, so two appliances can share a host', () => {
  const [a, b] = ['/a', '/b'].map((basePath) => cookieHeader(token, { secure: true, basePath }, 5_000))
  expect(a).toBe(`__Secure-sightglass=${token}; Path=/a; HttpOnly; SameSite=Lax; Max-Age=5; Secure`)
  expect(b).toContain('; Path=/b;')
  const sent = `__Secure-sightglass=${token}`
  expect(readCookie(sent, { secure: true, basePath: '/a' })).toBe(token)
  expect(readCookie(sent, https)).toBeNull()
})
