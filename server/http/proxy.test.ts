/** The client of a request, with and without trusted proxies. */
import { expect, test } from 'bun:test'
import { senderReader } from './proxy.ts'

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
