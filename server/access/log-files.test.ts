/** Names of rotated logs, identities, and blocks of whole lines from any chunks. */
import { writeFileSync } from 'node:fs'
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { testWith } from '../../tests/support/installed.ts'
import { tempDir } from '../../tests/support/temp-dir.ts'
import { identityOf, isRotationOf, lineBlocks, oldestFirst, openMember, type LineBlock } from './log-files.ts'
import { readMessage } from './line-prefix.ts'
import { syslogRules } from './syslog.ts'
import { watchRules } from './watches.ts'

test('names that rotation gives, and names of other logs', () => {
  const isRotation = isRotationOf('access.log')
  const rotated = [
    'access.log.1',
    'access.log.2.gz',
    'access.log-20261122',
    'access.log-20261122.gz',
    'access.log.old',
    'access.log.3.bz2',
    'access-20261122.log',
    'access-2026-11-22.log.zst',
    'access-2026-11-23T10-00-00.000.log.gz',
    'access.log.2026-11-22',
    'access.log-20261122-1795411948',
  ]
  expect(rotated.filter((name) => !isRotation(name))).toEqual([])
  const otherFiles = [
    'access.log',
    'access-2.log',
    'access.log.bz2',
    'access.log.1.xz',
    'myaccess.log.1',
    'access.log.txt',
  ]
  expect([...otherFiles, 'access.log.1.swp', 'access_log.1'].filter(isRotation)).toEqual([])
  expect(['access_log.1', 'access_log-20261122.gz'].filter(isRotationOf('access_log'))).toHaveLength(2)
})

test('rotated files of one second are in the order of their numbers, others in that of their times', () => {
  const createFile = (path: string, mtimeMs: number) => ({ path: `/var/log/access.log${path}`, mtimeMs })
  const rotated = [
    createFile('.2', 5_000.4),
    createFile('.1.gz', 5_000),
    createFile('.10', 5_000.2),
    createFile('.9.zst', 5_000.2),
    createFile('.3', 5_000.4),
    createFile('-20261122', 4_000),
    createFile('-20261121.gz', 4_000),
    createFile('.11.gz', 3_000),
    createFile('.12', 6_000),
  ]
  const inOrder = ['.11.gz', '-20261121.gz', '-20261122', '.10', '.9.zst', '.3', '.2', '.1.gz', '.12']
  for (const fileOrder of [rotated, rotated.toReversed()])
    expect(
      fileOrder.toSorted(oldestFirst).map(({ path }) => path.slice('/var/log/access.log'.length)),
    ).toEqual(inOrder)
})

test('a file has an identity when its first line is whole, or 1 KiB long', () => {
  for (const head of ['', 'half a line', '#Version: 1.0\n#Fields: date'])
    expect([head, identityOf(head)]).toEqual([head, null])
  const whole = identityOf('first\n')
  expect(whole).toMatch(/^[0-9a-f]{64}$/)
  expect(identityOf('first\nsecond\n')).toBe(whole)
  expect(identityOf('\u00ef\u00bb\u00bffirst\n')).toBe(whole)
  const long = 'x'.repeat(1_024)
  expect(identityOf(long)).toBe(identityOf(`${long}more\n`))
})

async function blocksOf(chunks: Buffer[], from: number): Promise<LineBlock[]> {
  async function* source(): AsyncGenerator<Uint8Array> {
    yield* chunks
  }
  const receivedBlocks: LineBlock[] = []
  const blocks = lineBlocks(source(), from)
  for (let next = await blocks.next(); ; next = await blocks.next()) {
    receivedBlocks.push(next.value)
    if (next.done === true) return receivedBlocks
  }
}

test('blocks cover the content without gaps and end at line feeds, whatever the chunks are', async () => {
  const lengths = fc.array(fc.oneof(fc.nat(40), fc.integer({ min: 65_000, max: 140_000 })), { maxLength: 6 })
  await fc.assert(
    fc.asyncProperty(
      lengths,
      fc.string({ maxLength: 9 }),
      fc.integer({ min: 2_000, max: 90_000 }),
      async (lineLengths, tail, size) => {
        const text =
          lineLengths.map((length) => `${'x'.repeat(length)}\n`).join('') + tail.replaceAll('\n', '')
        const bytes = Buffer.from(text, 'latin1')
        const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
          bytes.subarray(index * size, (index + 1) * size),
        )
        const blocks = await blocksOf(chunks, 7)
        const last = blocks.pop()!
        let offset = 7
        for (const { from, to, text: lines, cutTail } of blocks) {
          expect(from).toBe(offset)
          expect(
            bytes
              .subarray(from - 7, to - 7)
              .toString('latin1')
              .startsWith(lines),
          ).toBe(true)
          expect(cutTail === null ? to - from : 1_024).toBe(lines.length)
          expect(bytes[to - 8]).toBe(10)
          offset = to
        }
        expect([last.from, last.to]).toEqual([offset, 7 + bytes.length])
        expect(bytes.subarray(last.from - 7).includes(10)).toBe(false)
      },
    ),
    { numRuns: 60 },
  )
})

/** Headers as senders write them, and the sender that they name. `{}` stands for the line. */
const headers: [name: string, message: string, sender: string][] = [
  ['nginx', '<190>Nov 23 10:00:00 web1 nginx: {}', 'web1 nginx'],
  ['nginx, nohostname', '<190>Nov  3 10:00:00 nginx: {}', 'nginx'],
  ['HAProxy', '<14>Nov 23 10:00:00 web1 haproxy[12]: {}', 'web1 haproxy'],
  ['RFC 5424', '<190>1 2026-11-23T10:00:00Z web1 nginx 12 - - {}', 'web1 nginx'],
  ['RFC 5424 with data', '<190>1 - web2 nginx - - [a@1 b="c\\]d"] {}', 'web2 nginx'],
  ['RFC 5424 with a byte order mark', '<190>1 - web2 nginx - - - \ufeff{}', 'web2 nginx'],
  ['rsyslog', '<190>Nov  3 10:00:00 web1 nginx: {}', 'web1 nginx'],
  ['rsyslog, RSYSLOG_ForwardFormat', '<190>2026-11-23T10:00:00.123456+01:00 web1 nginx: {}', 'web1 nginx'],
  ['syslog-ng with fractions', '<190>Nov  3 10:00:00.123 web1 nginx[7]: {}', 'web1 nginx'],
  ['syslog-ng, ISO', '<190>2026-11-23T10:00:00+01:00 web1 nginx[7]: {}', 'web1 nginx'],
  [
    'logger',
    '<13>1 2026-11-23T10:00:00.1+00:00 web1 root - - [timeQuality tzKnown="1" isSynced="0"] {}',
    'web1 root',
  ],
  ['logger --rfc3164', '<13>Nov 23 10:00:00 web1 root: {}', 'web1 root'],
  ['logger --octet-count', '99 <13>Nov 23 10:00:00 web1 root: {}', 'web1 root'],
  ['Go, network', '<14>2026-11-23T10:00:00Z web1 shop[4242]: {}\n', 'web1 shop'],
  ['Go, local', '<14>Nov 23 10:00:00 shop[4242]: {}\n', 'shop'],
  ['Python', '<14>{}\0', ''],
  ['Python with an ident', '<14>Nov 23 10:00:00 shop: {}\0', 'shop'],
  ['Python with an ident alone', '<14>shop: {}\0', 'shop'],
  ['Docker', '<30>Nov 23 10:00:00 0123456789ab[812]: {}', '0123456789ab'],
  ['Docker, remote', '<30>2026-11-23T10:00:00Z web1 0123456789ab[812]: {}', 'web1 0123456789ab'],
  [
    'Docker, a tag with image and name',
    '<30>Nov 23 10:00:00 web1 nginx:1.29/web/01[8]: {}',
    'web1 nginx:1.29/web/01',
  ],
  [
    'Docker, rfc5424',
    '<30>1 2026-11-23T10:00:00Z web1 0123456789ab 812 0123456789ab - {}',
    'web1 0123456789ab',
  ],
  ['Cisco', '<189>29: *Nov 23 10:00:00.123: {}', ''],
  ['Cisco with origin, year and zone', '<189>29: r1: .Nov 23 2026 10:00:00 UTC: {}', ''],
  ['no header', '{}', ''],
]

test.each(headers)('the line of a datagram: %s', (_, message, sender) => {
  const text = '203.0.113.9 - - [23/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "x"'
  expect(readMessage(Buffer.from(message.replace('{}', () => text)))).toEqual({ line: text, sender })
})

test('a line feed in a datagram makes no second line', () => {
  expect(readMessage(Buffer.from(`<190>Nov 23 10:00:00 nginx: one\ntwo`)).line).toBe('one two')
})

test('rules of --watch and --listen-syslog, and what is wrong with others', () => {
  expect(watchRules('shop=/a.log,blog=/b=c.log')).toMatchObject([
    { org: 'default', path: '/a.log', format: 'auto', options: { siteId: 'shop' } },
    { path: '/b=c.log', options: { siteId: 'blog' } },
  ])
  const table = { site: 'shop', path: '/a.log', format: 'combined', org: 'acme', 'keep-query': ['q'] }
  expect(watchRules(JSON.stringify([table]))).toMatchObject([
    { org: 'acme', format: 'combined', options: { keepQuery: ['q'], keepAddresses: false } },
  ])
  for (const wrong of [
    'shop',
    'shop=',
    '=/a',
    '[{"site":"a"}]',
    '[{"site":"a","path":"/b","color":"red"}]',
    '[1]',
  ])
    expect(() => watchRules(wrong)).toThrow()
  expect(syslogRules('a=udp:127.0.0.1:514,b=unix:/run/s.sock,c=udp:[::1]:5514')).toMatchObject([
    { siteId: 'a', org: 'default', at: { host: '127.0.0.1', port: 514 } },
    { siteId: 'b', org: 'default', at: { unix: '/run/s.sock' } },
    { siteId: 'c', org: 'default', at: { host: '::1', port: 5514 } },
  ])
  const address = { site: 'a', address: 'unix:/run/s.sock', org: 'acme' }
  expect(syslogRules(JSON.stringify([{ ...address, 'trusted-proxy': ['10.0.0.0/8'] }]))).toEqual([
    { siteId: 'a', org: 'acme', at: { unix: '/run/s.sock' }, trustedProxies: ['10.0.0.0/8'] },
  ])
  expect(() => syslogRules(JSON.stringify([{ ...address, 'trusted-proxy': ['ten'] }]))).toThrow()
  expect(() => syslogRules('a=tcp:1.2.3.4:5')).toThrow('syslog over TCP is not received')
  for (const wrong of ['a', 'udp:1.2.3.4:5', 'a=tcp:1.2.3.4:5', 'a=udp:1.2.3.4:99999', 'a=unix:'])
    expect(() => syslogRules(wrong)).toThrow()
  expect(() => syslogRules('[{"site":"a"}]')).toThrow('[[listen-syslog]] needs address as a string')
  expect(() => syslogRules('[{"site":"a","address":"b","port":1}]')).toThrow('has no "port"')
})

/** Programs that rotate with bzip2 bring it; elsewhere its files are refused. */
const packers = { gz: 'gzip', zst: 'zstd', bz2: 'bzip2' } as const
for (const [extension, packer] of Object.entries(packers))
  testWith(packer, `a file that ${packer} packed is read from any offset`, async (path) => {
    using temp = tempDir('packed')
    const content = Array.from({ length: 30_000 }, (_, number) => `line ${number}\n`).join('')
    const log = temp.join(`access.log.1.${extension}`)
    writeFileSync(log, Bun.spawnSync([path, '-c'], { stdin: Buffer.from(content) }).stdout)
    const member = await openMember(log)
    for (const from of [0, 7, 200_000, content.length]) {
      const parts = await Array.fromAsync(member.chunks(from))
      expect(Buffer.concat(parts).toString()).toBe(content.slice(from))
    }
    expect(await member.head(20)).toBe(content.slice(0, 20))
    await member.close()
  })
