/** Every form of an address that servers, proxies and load balancers write, and clients behind trusted proxies. */
import { expect, test } from 'bun:test'
import { isIP } from 'node:net'
import fc from 'fast-check'
import { clientBehind, readAddress, readAddressAndPort } from './address.ts'

const full = '2001:db8:85a3:8d3:1319:8a2e:370:7348'

test.each([
  ['203.0.113.9', '203.0.113.9'],
  ['203.0.113.9:51234', '203.0.113.9'],
  ['2001:DB8::1', '2001:db8::1'],
  ['[2001:db8::1]', '2001:db8::1'],
  ['[2001:db8::1]:443', '2001:db8::1'],
  [`${full}:443`, full],
  ['2001:db8::1:51234', '2001:db8::1'], // five digits are no group of an address
  ['2001:db8::1:443', '2001:db8::1:443'], // which is itself an address
  ['::ffff:203.0.113.9', '203.0.113.9'],
  ['::FFFF:cb00:7109', '203.0.113.9'],
  ['[::ffff:203.0.113.9]:80', '203.0.113.9'],
  ['::ffff:203.0.113.9:8080', '203.0.113.9'],
  ['fe80::1%eth0', 'fe80::1'],
  ['[fe80::1%eth0]:443', 'fe80::1'],
  ['fe80::1%eth0:443', 'fe80::1'],
  ['::1', '::1'],
])('%s is the address %s', (text, address) => {
  expect(readAddress(text)).toBe(address)
})

test.each([
  '',
  '-',
  'Nov',
  'shop.example',
  'shop.example:443',
  'unix:',
  'unknown',
  '_hidden',
  '443',
  '1.2.3',
  'beef',
  '1.2.3.4.5',
  '256.1.1.1',
  '01.2.3.4',
  '1.2.3.4:',
  '1.2.3.4:99999',
  '1.2.3.4:8x',
  ' 1.2.3.4',
  '1.2.3.4,5.6.7.8',
  '[1.2.3.4]',
  '[::1',
  '[::1]x',
  '[::1]:',
  '::1%',
  '1::2::3',
  ':1:2',
  `${full}:443:443`,
  'a'.repeat(200),
])('%p is no address', (text) => {
  expect(readAddress(text)).toBeNull()
})

test('where a port always follows, the last number is the port', () => {
  expect(readAddressAndPort('2001:db8::1:443')).toBe('2001:db8::1')
  expect(readAddressAndPort('[2001:db8::1]:443')).toBe('2001:db8::1')
  expect(readAddressAndPort('203.0.113.9:443')).toBe('203.0.113.9')
  for (const text of ['203.0.113.9', 'shop.example:443', '-', '2001:db8::1:port', ''])
    expect(readAddressAndPort(text)).toBeNull()
})

test('every form of a generated address reads as that address', () => {
  const plain = fc.oneof(fc.ipV4(), fc.ipV6())
  fc.assert(
    fc.property(plain, fc.integer({ min: 0, max: 65_535 }), (text, portNumber) => {
      const address = readAddress(text)
      expect(address === null || isIP(address) > 0).toBe(true)
      if (address === null) return // a mixture of notations that no server writes
      const isV4 = !text.includes(':')
      const forms = isV4
        ? [`${text}:${portNumber}`, `::ffff:${text}`, `[::ffff:${text}]:${portNumber}`]
        : [`[${text}]`, `[${text}]:${portNumber}`, `${text}%eth0`, text.toUpperCase()]
      for (const form of forms) expect(readAddress(form)).toBe(address)
      expect(readAddressAndPort(`${text}:${portNumber}`)).toBe(address)
    }),
  )
})

test('any text is null or an address', () => {
  const pieces = fc.constantFrom('1', '.', ':', '::', '[', ']', '%', 'ffff', '255', 'g', ' ', ',')
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 24 }), (parts) => {
      for (const read of [readAddress, readAddressAndPort]) {
        const address = read(parts.join(''))
        expect(address === null || isIP(address) > 0).toBe(true)
      }
    }),
  )
})

const isTrusted = (address: string): boolean => address.startsWith('10.')

test.each([
  ['203.0.113.9', '20.171.206.1', '203.0.113.9'], // anybody can send the header
  ['10.0.0.5', '203.0.113.9', '203.0.113.9'],
  ['10.0.0.5', '20.171.206.1, 203.0.113.9:51234', '203.0.113.9'],
  ['10.0.0.5', '20.171.206.1,203.0.113.9,10.0.0.9', '203.0.113.9'],
  ['10.0.0.5', '[2001:db8::1]:443', '2001:db8::1'],
  ['10.0.0.5', '20.171.206.1, unknown', null],
  ['10.0.0.5', '20.171.206.1,', null],
  ['10.0.0.5', '10.0.0.7', '10.0.0.7'],
  ['10.0.0.5', '', '10.0.0.5'],
  ['10.0.0.5', null, '10.0.0.5'],
])('the client behind %s with %p is %p', (peer, forwarded, client) => {
  expect(clientBehind(peer, forwarded, isTrusted)).toBe(client)
})
