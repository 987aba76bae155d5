/** The sign-in cookie, written and read back, and cross-site requests that change state. */
import { expect, test } from 'bun:test'
import { cookieHeader, readCookie, requireSameOrigin } from './sign-ins.ts'
import { AppError } from '../../errors.ts'

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
  const cookie = `__Secure-sightglass=${token}`
  expect(readCookie(cookie, { secure: true, basePath: '/a' })).toBe(token)
  expect(readCookie(cookie, https)).toBeNull()
})

function passes(method: string, headers: Record<string, string>): boolean {
  try {
    requireSameOrigin(new Request('http://127.0.0.1:7400/api/keys', { method, headers }))
    return true
  } catch (error) {
    if (error instanceof AppError && error.code === 'forbidden') return false
    throw error
  }
}

const host = '127.0.0.1:7400'

test('Sec-Fetch-Site decides where the browser sends it', () => {
  expect(passes('POST', { host, 'sec-fetch-site': 'same-origin' })).toBe(true)
  expect(passes('POST', { host, 'sec-fetch-site': 'none' })).toBe(true)
  expect(passes('POST', { host, 'sec-fetch-site': 'cross-site' })).toBe(false)
  expect(passes('POST', { host, 'sec-fetch-site': 'same-site' })).toBe(false)
  expect(passes('GET', { host, 'sec-fetch-site': 'cross-site' })).toBe(true)
})

test('otherwise Origin must match Host', () => {
  expect(passes('POST', { host, origin: `http://${host}` })).toBe(true)
  expect(passes('POST', { host })).toBe(true)
  for (const origin of [
    'null',
    'http://evil.example',
    `http://${host}.evil.example`,
    'http://127.0.0.1:7401',
  ]) {
    expect([origin, passes('POST', { host, origin })]).toEqual([origin, false])
  }
})
