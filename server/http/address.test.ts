/** Addresses in links come from the request or the settings and are never 0.0.0.0. */
import { expect, test } from 'bun:test'
import { addressOf, reachableHost } from './address.ts'
import { setContext } from './request.ts'
import { makeShares } from './shares.ts'

function requestBy(secure: boolean): Request {
  const request = new Request('http://traces.example:8443/logs')
  const inFlight = { bodies: makeShares(1), responses: makeShares(1) }
  const unused = { id: 'req_1', startedMs: 0, address: '', local: false, keepOpen() {} }
  setContext(request, { ...unused, inFlight, listener: 'main', secure })
  return request
}

test('the URL has the scheme of the request unless a public URL is set', () => {
  const own = { publicUrl: null, basePath: '' }
  expect(addressOf(requestBy(false), own)).toBe('http://traces.example:8443')
  expect(addressOf(requestBy(true), own)).toBe('https://traces.example:8443')
  const shared = { publicUrl: 'https://tools.example', basePath: '/sightglass' }
  expect(addressOf(requestBy(false), shared)).toBe('https://tools.example/sightglass')
})

test('replaces a wildcard address by one that others can open', () => {
  const more = { netmask: '', mac: '', cidr: null }
  const inner = { address: '127.0.0.1', family: 'IPv4' as const, internal: true, ...more }
  const local = { address: 'fe80::1', family: 'IPv6' as const, internal: false, scopeid: 2, ...more }
  const v6 = { address: '2001:db8::7', family: 'IPv6' as const, internal: false, scopeid: 0, ...more }
  const v4 = { address: '192.0.2.7', family: 'IPv4' as const, internal: false, ...more }
  expect(reachableHost('traces.example', { lo: [inner] })).toBe('traces.example')
  expect(reachableHost('0.0.0.0', { lo: [inner], eth0: [local, v6, v4] })).toBe('192.0.2.7')
  expect(reachableHost('::', { lo: [inner], eth0: [local, v6] })).toBe('2001:db8::7')
  expect(reachableHost('0.0.0.0', { lo: [inner], eth0: [local, v6] })).toBe('127.0.0.1')
  expect(reachableHost('::', { lo: [inner], eth0: [local] })).toBe('::1')
})
