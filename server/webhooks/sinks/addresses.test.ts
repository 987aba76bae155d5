/** One forbidden address refuses the whole name; a failing name server is distinguished from an unknown name. */
import fc from 'fast-check'
import { describe, expect, test } from 'bun:test'
import { addressGuard, readIp, resolveWith } from './addresses.ts'
import { parseDestination } from './destination.ts'

const guard = addressGuard([])
const failing = (code: string) => Promise.reject(Object.assign(new Error(code), { code }))

test('any forbidden address refuses the whole name', async () => {
  const answers = new Map([
    ['good.test', ['1.1.1.1', '2606:4700::1111']],
    ['mixed.test', ['1.1.1.1', '10.0.0.1']],
    ['inside.test', ['::ffff:127.0.0.1']],
    ['nothing.test', []],
  ])
  const resolve = resolveWith(async (name) => answers.get(name)!, guard)
  expect(await resolve('good.test')).toEqual({ kind: 'addresses', addresses: ['1.1.1.1', '2606:4700::1111'] })
  expect(await resolve('mixed.test')).toMatchObject({ kind: 'refused', address: '10.0.0.1' })
  expect(await resolve('inside.test')).toMatchObject({ kind: 'refused' })
  expect(await resolve('nothing.test')).toEqual({ kind: 'unknown' })
})

test('literals are not looked up', async () => {
  const resolve = resolveWith(() => failing('EAI_AGAIN'), guard)
  expect(await resolve('1.1.1.1')).toMatchObject({ kind: 'addresses' })
  expect(await resolve('::1')).toMatchObject({ kind: 'refused' })
})

test('names of this machine are not looked up and reach only allowed ranges', async () => {
  const names = ['localhost', 'localhost.', 'x.localhost', 'A.B.LOCALHOST.', 'ip6-loopback']
  const lookedUp: string[] = []
  const resolver = async (name: string) => (lookedUp.push(name), ['1.1.1.1'])
  const closed = resolveWith(resolver, guard)
  const open = resolveWith(resolver, addressGuard(['127.0.0.0/8']))
  for (const name of names) {
    expect([name, await closed(name)]).toMatchObject([name, { kind: 'refused' }])
    expect([name, await open(name)]).toEqual([name, { kind: 'addresses', addresses: ['127.0.0.1'] }])
  }
  expect(lookedUp).toEqual([])
  expect(await closed('localhost.example')).toMatchObject({ kind: 'addresses' })
})

describe('name servers that do not answer', () => {
  test("unanswered for every name is a local failure; for one name only, the owner's", async () => {
    let isDown = false
    const resolve = resolveWith((name) => {
      return isDown || name === 'broken.test' ? failing('EAI_AGAIN') : Promise.resolve(['1.1.1.1'])
    }, guard)
    expect(await resolve('broken.test')).toEqual({ kind: 'resolver_down' }) // nothing is known to compare with
    await resolve('good.test')
    expect(await resolve('broken.test')).toEqual({ kind: 'unanswered' })
    isDown = true
    expect(await resolve('broken.test')).toEqual({ kind: 'resolver_down' })
    expect(await resolve('good.test')).toEqual({ kind: 'resolver_down' })
  })

  test('an unknown name is an answer', async () => {
    expect(await resolveWith(() => failing('ENOTFOUND'), guard)('none.test')).toEqual({ kind: 'unknown' })
  })

  test('a name server that hangs is abandoned after 3 s', async () => {
    const startedMs = performance.now()
    const since = () => performance.now() - startedMs
    const resolution = resolveWith(() => new Promise(() => {}), guard)('slow.test')
    const [givenUpMs, sleptMs] = await Promise.all([resolution.then(since), Bun.sleep(3_000).then(since)])
    expect(await resolution).toEqual({ kind: 'resolver_down' })
    expect(givenUpMs).toBeWithin(2_900, sleptMs + 500)
  })
})

/** Forbidden addresses are refused in every notation; public and allowed ones pass, cloud metadata never does. */
const closed = addressGuard([])

const forbidden = [
  '0.0.0.0',
  '0.1.2.3',
  '10.0.0.1',
  '10.255.255.255',
  '100.64.0.1',
  '100.127.255.255',
  '127.0.0.1',
  '127.255.255.254',
  '169.254.0.1',
  '169.254.169.254',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.8',
  '192.0.2.1',
  '192.88.99.1',
  '192.168.1.1',
  '198.18.0.1',
  '198.19.255.255',
  '198.51.100.7',
  '203.0.113.9',
  '224.0.0.1',
  '239.255.255.255',
  '240.0.0.1',
  '255.255.255.255',
  '168.63.129.16',
  '100.100.100.200',
  '::',
  '::1',
  '::ffff:127.0.0.1',
  '::ffff:7f00:1',
  '::127.0.0.1',
  '::8.8.8.8',
  '64:ff9b::a9fe:a9fe',
  '64:ff9b::8.8.8.8',
  '64:ff9b:1::a00:1',
  '100::1',
  '2001::1',
  '2001:db8::1',
  '2002:7f00:1::',
  '3fff::1',
  '5f00::1',
  'fc00::1',
  'fd00:ec2::254',
  'fe80::1',
  'fec0::1',
  'ff02::1',
  '0:0:0:0:0:ffff:a9fe:a9fe',
]
const open = ['1.1.1.1', '8.8.8.8', '100.63.255.255', '172.32.0.1', '192.0.1.1', '223.255.255.255']
const open6 = ['2606:4700::1111', '2a00:1450:4001:81b::200e', '::ffff:8.8.8.8', '2400:cb00::1']

test('every special range is refused, public addresses are not', () => {
  for (const address of forbidden) expect([address, closed.refusal(address)]).not.toEqual([address, null])
  for (const address of [...open, ...open6])
    expect([address, closed.refusal(address)]).toEqual([address, null])
  for (const text of ['', 'localhost', '1.2.3', '::1%eth0', '1.1.1.1/32'])
    expect(closed.refusal(text)).not.toBeNull()
})

test('an allowed range is allowed in every form of its addresses, and nothing else is', () => {
  const guard = addressGuard(['127.0.0.0/8', 'fd12:3456::/32', '10.1.2.3'])
  for (const address of ['127.0.0.1', '127.9.9.9', '::ffff:127.0.0.1', 'fd12:3456::9', '10.1.2.3']) {
    expect([address, guard.refusal(address)]).toEqual([address, null])
  }
  for (const address of ['10.1.2.4', '10.1.2.2', '192.168.0.1', 'fd12:3457::1', '::1', '::127.0.0.1']) {
    expect([address, guard.refusal(address)]).not.toEqual([address, null])
  }
})

test('cloud metadata addresses stay refused whatever is allowed, also embedded in other addresses', () => {
  const guard = addressGuard(['0.0.0.0/0', '::/0'])
  const metadata = ['169.254.169.254', '169.254.170.2', '168.63.129.16', '100.100.100.200', 'fd00:ec2::254']
  const carriers = [
    '::ffff:169.254.169.254',
    '64:ff9b::169.254.169.254',
    '2002:a9fe:a9fe::1',
    '::169.254.169.254',
  ]
  for (const address of [...metadata, ...carriers]) expect(guard.refusal(address)).toMatch(/metadata/)
  expect(guard.refusal('10.0.0.1')).toBeNull()
})

test('an invalid range is an error at start', () => {
  for (const range of ['10.0.0.0/33', 'ten', '::/129', '10.0.0.0/8/8', ''])
    expect(() => addressGuard([range])).toThrow()
})

describe('literals in a URL', () => {
  const literals = [
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f000001',
    '0x7f.1',
    '0177.0.0.1',
    '017700000001',
    '127.0.0.1.',
    '①②⑦.⓪.⓪.①',
    '%31%32%37.0.0.1',
    '１２７.0.0.1',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[0:0:0:0:0:0:0:1]',
    '[64:ff9b::7f00:1]',
    '169.254.169.254',
    '0xa9fea9fe',
    '2852039166',
    '0',
    '10.1',
    '[::]',
    '[fe80::1]',
    '[fd00:ec2::254]',
    '[2002:7f00:1::]',
    '192.168.0.1',
    '0300.0250.0.1',
  ]
  const never = resolveWith(() => Promise.reject(new Error('no name is looked up here')), closed)

  test.each(literals)('http://%s/ is refused without a lookup', async (host) => {
    for (const url of [
      `http://${host}/`,
      `https://${host}:8443/x?y`,
      `http:\\\\${host}\\`,
      `syslog+udp://${host}:514`,
    ]) {
      let target
      try {
        target = parseDestination(url, { resolve: never, sinkDir: null }).target as { host: string }
      } catch {
        continue // its form is refused already
      }
      expect([url, (await never(target.host)).kind]).toEqual([url, 'refused'])
    }
  })
})

test('an IPv4 address has the same bytes alone and inside an IPv6 address', () => {
  fc.assert(
    fc.property(fc.ipV4(), (text) => {
      expect([...readIp(`::ffff:${text}`)!.slice(12)]).toEqual([...readIp(text)!])
    }),
  )
})

test('an IPv6 address has the same bytes as in the URL that Bun normalizes', () => {
  fc.assert(
    fc.property(fc.ipV6(), (text) => {
      fc.pre(URL.canParse(`http://[${text}]/`)) // it rejects some forms that the system accepts
      const canonical = new URL(`http://[${text}]/`).hostname.slice(1, -1)
      expect([...readIp(text)!]).toEqual([...readIp(canonical)!])
    }),
  )
})
