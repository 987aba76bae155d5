/** Addresses in links, the Host headers that open the dashboard, and the client behind trusted proxies. */
import { expect, test } from 'bun:test'
import { addressOf, hostAllowed, hostName, reachableHost, senderReader, isLoopbackHost } from './address.ts'
import { setContext } from './request.ts'
import { makeShares } from './shares.ts'

function requestBy(secure: boolean): Request {
  const request = new Request('http://traces.example:8443/logs')
  const inFlight = { bodies: makeShares(1), largeBodies: makeShares(1), responses: makeShares(1) }
  const unused = { id: 'req_1', startedMs: 0, keepOpen() {} }
  const sender = () => ({ address: '', secure })
  setContext(request, { ...unused, inFlight, listener: 'main', sender })
  return request
}

test('the URL has the scheme of the request unless a public URL is set', () => {
  const addressOptions = { publicUrl: null, basePath: '' }
  expect(addressOf(requestBy(false), addressOptions)).toBe('http://traces.example:8443')
  expect(addressOf(requestBy(true), addressOptions)).toBe('https://traces.example:8443')
  const shared = { publicUrl: 'https://tools.example', basePath: '/sightglass' }
  expect(addressOf(requestBy(false), shared)).toBe('https://tools.example/sightglass')
})

test('replaces a wildcard address by one that others can open', () => {
  const interfaceFields = { netmask: '', mac: '', cidr: null }
  const inner = { address: '127.0.0.1', family: 'IPv4' as const, internal: true, ...interfaceFields }
  const local = {
    address: 'fe80::1',
    family: 'IPv6' as const,
    internal: false,
    scopeid: 2,
    ...interfaceFields,
  }
  const v6 = {
    address: '2001:db8::7',
    family: 'IPv6' as const,
    internal: false,
    scopeid: 0,
    ...interfaceFields,
  }
  const v4 = { address: '192.0.2.7', family: 'IPv4' as const, internal: false, ...interfaceFields }
  expect(reachableHost('traces.example', { lo: [inner] })).toBe('traces.example')
  expect(reachableHost('0.0.0.0', { lo: [inner], eth0: [local, v6, v4] })).toBe('192.0.2.7')
  expect(reachableHost('::', { lo: [inner], eth0: [local, v6] })).toBe('2001:db8::7')
  expect(reachableHost('0.0.0.0', { lo: [inner], eth0: [local, v6] })).toBe('127.0.0.1')
  expect(reachableHost('::', { lo: [inner], eth0: [local] })).toBe('::1')
})

const rule = { listenHosts: ['10.1.2.3'], publicUrl: 'https://agents.example.com', allowedHosts: ['box.lan'] }

test('loopback names, literals, the public name and allowed hosts pass', () => {
  const good = ['localhost:7400', 'a.localhost', '127.0.0.1:7400', '[::1]:7400', '10.1.2.3', '192.168.7.9:80']
  for (const host of [...good, 'AGENTS.example.com', 'agents.example.com.', 'box.lan:7400']) {
    expect([host, hostAllowed(host, rule)]).toEqual([host, true])
  }
})

test('a name that only resolves to this machine does not', () => {
  const bad = [
    'evil.example',
    'localhost.evil.example',
    'notlocalhost',
    'agents.example.com.evil.example',
    '',
    'a b',
  ]
  for (const host of [...bad, null, 'localhost:7400:1', '[::1', 'user@localhost', 'localhost:port']) {
    expect([host, hostAllowed(host, rule)]).toEqual([host, false])
  }
})

test('only names and addresses of this machine are local', () => {
  for (const host of ['localhost', 'app.localhost:8080', '127.0.0.1:80', '127.8.8.8', '[::1]:443'])
    expect([host, isLoopbackHost(host)]).toEqual([host, true])
  for (const host of [null, '', '127.evil.example', '127.0.0.1.evil.example', 'localhost.evil', '10.0.0.1'])
    expect([host, isLoopbackHost(host)]).toEqual([host, false])
})

test('the name is read without port, brackets, case and trailing dot', () => {
  expect(['[::1]:7400', 'LocalHost.:1', 'a_b.c'].map(hostName)).toEqual(['::1', 'localhost', 'a_b.c'])
})

const forwarded = (value: string, proto = 'https') =>
  new Headers({ 'x-forwarded-for': value, 'x-forwarded-proto': proto })

test('without trusted proxies forwarding headers are ignored', () => {
  const read = senderReader([])
  expect(read('203.0.113.9', forwarded('1.2.3.4'))).toEqual({ address: '203.0.113.9', secure: false })
})

test('a trusted proxy identifies the client; an untrusted hop in front of it ends the chain', () => {
  const read = senderReader(['10.0.0.0/8', '::1'])
  expect(read('10.0.0.1', forwarded('198.51.100.7'))).toEqual({ address: '198.51.100.7', secure: true })
  expect(read('10.0.0.1', forwarded('6.6.6.6, 198.51.100.7, 10.0.0.2'))).toEqual({
    address: '198.51.100.7',
    secure: true,
  })
  expect(read('::1', forwarded('198.51.100.7', 'http'))).toEqual({ address: '198.51.100.7', secure: false })
  expect(read('::ffff:10.0.0.1', forwarded('garbage')).address).toBe('10.0.0.1')
  expect(read('192.0.2.1', forwarded('198.51.100.7')).address).toBe('192.0.2.1')
})
