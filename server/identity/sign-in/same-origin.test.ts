/** Cross-site requests that change state are rejected; those of the dashboard and of scripts pass. */
import { expect, test } from 'bun:test'
import { AppError } from '../../errors.ts'
import { requireSameOrigin } from '../same-origin.ts'

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
