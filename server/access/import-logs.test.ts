/** Importing access logs: files of every kind, ids, sessions, referrals, and counts that add up. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { testWith } from '../../tests/support/installed.ts'
import { tempDir } from '../../tests/support/temp-dir.ts'
import {
  browser,
  failure,
  gptBot,
  importLogs,
  line,
  newMemory,
  plainOptions,
  type AccessEvent,
} from '../../tests/support/access-logs.ts'
import { importRun, planLogs } from './import-logs.ts'

setDefaultTimeout(30_000)

const ofType = (events: AccessEvent[], type: string): AccessEvent[] =>
  events.filter((event) => event['type'] === type)

test('every line counts once: agents, people, assets, other bots, comments, bad lines', async () => {
  using temp = tempDir('access')
  const path = temp.join('access.log')
  const lines = [
    line({ path: '/pricing?token=secret&page=2', status: 403, referrer: 'https://User@Shop.Example:8443/a' }),
    line({ second: 60, path: '/logo.png' }),
    line({ userAgent: browser }),
    line({ userAgent: browser, path: '/app.css?v=1' }),
    line({ userAgent: 'curl/8.5' }),
    line({ userAgent: 'Mozilla/5.0 (compatible; SemrushBot/7; +http://www.semrush.com/bot.html)' }),
    line({ userAgent: '-' }),
    '\n',
    '# comment\n',
    'broken\n',
    line().slice(0, 60), // a half line at the end
  ]
  writeFileSync(path, lines.join(''))
  const { sums, events } = await importLogs([path])
  expect(sums).toMatchObject({
    lines: 11,
    stored: 2,
    people: 1,
    excluded: 6,
    bad: 2,
    sessions: 1,
    referrals: 0,
  })
  expect(sums.badLines).toEqual([
    { path, line: 10, message: 'does not fit combined' },
    { path, line: 11, message: 'does not fit combined' },
  ])
  expect(events).toHaveLength(3)
  const [first] = ofType(events, 'agent.requested')
  expect(first).toMatchObject({
    siteId: 'shop',
    occurredAt: '2026-11-23T00:00:00.000Z',
    outcome: 'blocked',
    agent: { class: 'crawler', trust: 'detected', vendor: 'OpenAI', name: 'GPTBot', userAgent: gptBot },
  })
  expect(first!['metadata']).toEqual({
    page: '/pricing',
    method: 'GET',
    status: 403,
    bytes: 512,
    referrerHost: 'shop.example',
    source: 'access-log',
  })
  expect(ofType(events, 'agent.detected')[0]).toMatchObject({
    sessionId: first!['sessionId'],
    outcome: 'success',
  })
  expect(JSON.stringify(events)).not.toMatch(/secret|203\.0\.113/)
})

test("an agent's claim is judged by its address behind trusted proxies, at the time of the request", async () => {
  using temp = tempDir('access')
  const path = temp.join('access.log')
  const chatGpt = 'Mozilla/5.0; compatible; ChatGPT-User/1.0; +https://openai.com/bot'
  const odd = 'Mozilla/5.0 (compatible; Bytespider; spider-feedback@bytedance.com)'
  const forwarded = (text: string, address: string): string => text.replace(/\n$/, ` "${address}"\n`)
  const real = '132.196.86.5'
  const forged = '198.51.100.7'
  const lines = [
    forwarded(line({ address: real }), '-'),
    forwarded(line({ address: forged }), real), // not behind a trusted proxy
    forwarded(line({ address: '192.0.2.1' }), `${real}, ${forged}`),
    forwarded(line({ address: '192.0.2.1' }), `${forged}, ${real}`),
    forwarded(line({ address: '10.0.0.1' }), '-'),
    forwarded(line({ address: forged, userAgent: chatGpt }), '-'),
    forwarded(line({ address: forged, userAgent: odd }), '-'),
    forwarded(line({ address: forged }).replace('/2026:', '/2028:'), '-'),
    forwarded(line({ address: real }).replace('/2026:', '/2028:'), '-'),
  ]
  writeFileSync(path, lines.join(''))
  const { events } = await importLogs([path], { trustedProxies: ['192.0.2.0/24'] })
  const judged = ofType(events, 'agent.requested').map((event) => event['agent'] as Record<string, unknown>)
  const list = { method: 'address', list: 'gptbot', listDate: '2025-10-30' }
  const inside = { trust: 'verified', verdict: 'verified', evidence: list }
  const outside = { trust: 'detected', verdict: 'contradicted', evidence: { ...list, networks: 17 } }
  const users = {
    ...list,
    list: 'chatgpt-user',
    listDate: '2026-08-14',
    networks: 193,
    reason: 'user-triggered',
  }
  expect(
    judged.map(({ trust, verdict, evidence: proof }) => ({
      trust,
      verdict,
      ...(proof ? { evidence: proof } : {}),
    })),
  ).toEqual([
    inside,
    outside,
    outside,
    inside,
    { trust: 'declared', verdict: 'unverifiable' }, // a private address is not the agent's
    { trust: 'declared', verdict: 'unverifiable', evidence: users },
    { trust: 'declared', verdict: 'unverifiable' }, // ByteDance publishes nothing
    {
      trust: 'declared',
      verdict: 'unverifiable',
      evidence: { ...list, networks: 17, reason: 'old-list' },
    },
    inside,
  ])
  for (const detected of ofType(events, 'agent.detected')) {
    const { verdict } = detected['agent'] as { verdict: string }
    const requests = ofType(events, 'agent.requested').filter(
      ({ sessionId }) => sessionId === detected['sessionId'],
    )
    expect(requests.map(({ agent }) => (agent as { verdict: string }).verdict)).toContain(verdict)
  }
  expect(JSON.stringify(events)).not.toMatch(/132\.196|198\.51\.100/)
})

test('a session ends after 30 minutes, and belongs to one address and one product', async () => {
  using temp = tempDir('access')
  const claude = 'Mozilla/5.0 (compatible; ClaudeBot/1.0; +claudebot@anthropic.com)'
  const lines = [0, 1_800, 3_601].map((second) => line({ second }))
  lines.push(line({ second: 3_602, address: '203.0.113.10' }), line({ second: 3_603, userAgent: claude }))
  lines.push(line({ second: 3_590 })) // a clock that goes back
  writeFileSync(temp.join('a.log'), lines.join(''))
  const { events, sums } = await importLogs([temp.join('a.log')])
  const sessions = ofType(events, 'agent.requested').map((event) => event['sessionId'])
  expect(new Set(sessions).size).toBe(4)
  expect(sums.sessions).toBe(4)
  expect([sessions[1], sessions[5]]).toEqual([sessions[0], sessions[2]])
})

test('a person whom an assistant sent is one event per visit', async () => {
  using temp = tempDir('access')
  const lines = [
    line({ userAgent: browser, referrer: 'https://chatgpt.com/', path: '/a?utm_source=chatgpt.com' }),
    line({ second: 5, userAgent: browser, referrer: 'https://chatgpt.com/' }), // reloaded
    line({ second: 6, userAgent: browser, path: '/b?utm_source=perplexity', address: '198.51.100.1' }),
    line({
      second: 7,
      userAgent: browser,
      referrer: 'https://www.perplexity.ai/search?q=x',
      address: '198.51.100.2',
    }),
    line({
      second: 8,
      userAgent: browser,
      referrer: 'https://chatgpt.com.evil.example/',
      address: '198.51.100.3',
    }),
    line({ second: 9, userAgent: browser, path: '/?utm_source=chat', address: '198.51.100.4' }),
  ]
  writeFileSync(temp.join('a.log'), lines.join(''))
  const { events, sums } = await importLogs([temp.join('a.log')])
  expect(sums).toMatchObject({ people: 6, stored: 0, sessions: 0, referrals: 3 })
  expect(events.map((event) => (event['agent'] as { name: string }).name)).toEqual([
    'ChatGPT',
    'Perplexity',
    'Perplexity',
  ])
  expect(events[0]).toMatchObject({
    type: 'agent.referred',
    metadata: { page: '/a', referrerHost: 'chatgpt.com' },
  })
})

test('--keep-query, --keep-addresses and --trusted-proxy store what they name', async () => {
  using temp = tempDir('access')
  const forwarded = (hops: string, address: string, path: string): string =>
    line({ address, path }).replace(/\n$/, ` "${hops}"\n`)
  writeFileSync(
    temp.join('a.log'),
    forwarded('192.0.2.1, 198.51.100.77', '10.0.0.1', '/?q=a+b&token=x') + // the first hop is forged
      forwarded('192.0.2.2', '203.0.113.5', '/') + // no proxy of ours
      forwarded('2001:db8:1:2::3', '10.0.0.1', '/'),
  )
  const options = { keepQuery: ['q'], keepAddresses: true, trustedProxies: ['10.0.0.0/8'] }
  const { events } = await importLogs([temp.join('a.log')], options)
  const metadata = ofType(events, 'agent.requested').map(
    (event) => event['metadata'] as { [name: string]: unknown },
  )
  expect(metadata.map(({ address }) => address)).toEqual([
    '198.51.100.0/24',
    '203.0.113.0/24',
    '2001:db8:1::/48',
  ])
  expect(metadata[0]!['query']).toEqual({ q: 'a b' })
  const untrusted = await importLogs([temp.join('a.log')], { keepAddresses: true })
  expect(ofType(untrusted.events, 'agent.requested')[0]).toMatchObject({
    metadata: { address: '10.0.0.0/24' },
  })
})

test('a file that was renamed, compressed, copied, or that has grown is stored once', async () => {
  using temp = tempDir('access')
  const knownMemory = newMemory()
  const first = Array.from({ length: 40 }, (_, second) => line({ second })).join('')
  writeFileSync(temp.join('access.log'), line())
  expect((await importLogs([temp.join('access.log')], {}, knownMemory)).sums).toMatchObject({ stored: 1 })
  writeFileSync(temp.join('access.log'), first)
  expect((await importLogs([temp.join('access.log')], {}, knownMemory)).sums).toMatchObject({
    stored: 39,
    deduped: 1,
  })
  const size = knownMemory.ids.size
  renameSync(temp.join('access.log'), temp.join('access.log.1'))
  writeFileSync(temp.join('access.log.2.gz'), Bun.gzipSync(first))
  writeFileSync(temp.join('access.log.3.zst'), await Bun.zstdCompress(first))
  for (const name of ['access.log.1', 'access.log.2.gz', 'access.log.3.zst'])
    expect((await importLogs([temp.join(name)], {}, knownMemory)).sums).toMatchObject({
      stored: 0,
      deduped: 40,
    })
  expect(knownMemory.ids.size).toBe(size)
  writeFileSync(temp.join('other.log'), line({ address: '198.51.100.1' }) + first) // the same lines elsewhere
  expect((await importLogs([temp.join('other.log')], {}, knownMemory)).sums).toMatchObject({ stored: 41 })
})

test('equal lines of one file are different requests', async () => {
  using temp = tempDir('access')
  writeFileSync(temp.join('a.log'), line().repeat(2_500))
  expect((await importLogs([temp.join('a.log')])).sums).toMatchObject({
    lines: 2_500,
    stored: 2_500,
    sessions: 1,
  })
})

test('folders and patterns: rotated files in order of time, other files skipped, links read once', async () => {
  using temp = tempDir('access')
  mkdirSync(temp.join('logs/old'), { recursive: true })
  writeFileSync(temp.join('logs/access.log'), line({ second: 200 }))
  writeFileSync(temp.join('logs/access.log.1'), line({ second: 100 }))
  writeFileSync(temp.join('logs/old/access.log.2.gz'), Bun.gzipSync(line({ second: 0 })))
  writeFileSync(temp.join('logs/error.log'), '2026/11/23 07:32:28 [error] 12#12: *1 open() failed\n')
  writeFileSync(temp.join('logs/empty.log'), '')
  symlinkSync(temp.join('logs'), temp.join('logs/old/loop'))
  symlinkSync(temp.join('logs/me'), temp.join('logs/me'))
  symlinkSync(temp.join('logs/access.log'), temp.join('logs/current'))
  const { sums, events, skipped, problems } = await importLogs([temp.join('logs')])
  expect(sums).toMatchObject({ lines: 3, stored: 3, sessions: 1 })
  const times = ofType(events, 'agent.requested').map((event) => String(event['occurredAt']).slice(14, 19))
  expect(times).toEqual(['00:00', '01:40', '03:20'])
  expect(skipped.map(({ path }) => path.split('/').at(-1)).sort()).toEqual(['empty.log', 'error.log'])
  expect(problems).toEqual([{ path: temp.join('logs/me'), message: 'is a loop of symbolic links' }])
  const glob = await importLogs([temp.join('logs/access.log*')])
  expect(glob.sums).toMatchObject({ lines: 2, stored: 2 })
})

/** Without the program its files are refused, which formats.test.ts tests. */
testWith(
  'bzip2',
  'files of bzip2 are read like the file itself, and damaged ones are named',
  async (bzip2) => {
    using temp = tempDir('access')
    const content = Array.from({ length: 20_000 }, (_, second) => line({ second })).join('')
    const packed = Bun.spawnSync([bzip2, '-c'], { stdin: Buffer.from(content) }).stdout
    writeFileSync(temp.join('access.log.1.bz2'), packed)
    writeFileSync(temp.join('cut.bz2'), packed.subarray(0, packed.length / 2))
    const importResult = await importLogs([temp.join('access.log.1.bz2')])
    expect([importResult.sums.lines, importResult.sums.stored, importResult.problems]).toEqual([
      20_000,
      20_000,
      [],
    ])
    const { problems } = await importLogs([temp.join('cut.bz2')])
    expect(problems).toEqual([{ path: temp.join('cut.bz2'), message: 'has damaged compressed data' }])
  },
)

test('truncated and damaged archives, vanished and unreadable files are named; the rest is imported', async () => {
  using temp = tempDir('access')
  const content = Array.from({ length: 3_000 }, (_, second) =>
    line({ second, path: `/${Bun.hash(`${second}`)}` }),
  ).join('')
  const gz = Bun.gzipSync(content)
  writeFileSync(temp.join('cut.gz'), gz.subarray(0, gz.length / 2))
  const zst = await Bun.zstdCompress(content)
  writeFileSync(temp.join('cut.zst'), zst.subarray(0, zst.length / 2))
  writeFileSync(temp.join('two.gz'), Buffer.concat([Bun.gzipSync(line()), Bun.gzipSync(line({ second: 1 }))]))
  for (const name of ['cut.gz', 'cut.zst']) {
    const { sums, problems } = await importLogs([temp.join(name)])
    expect(problems).toEqual([
      { path: temp.join(name), message: 'ends in the middle of its compressed data' },
    ])
    if (name === 'cut.gz') expect(sums.stored).toBeGreaterThan(500)
  }
  const missing = await importLogs([temp.join('nothing.log'), temp.join('two.gz'), temp.join('*.none')])
  expect(missing.sums.stored).toBe(2)
  expect(missing.problems.map(({ message }) => message)).toEqual([
    'does not exist (any more)',
    'matches no file',
  ])

  writeFileSync(temp.join('gone.log'), content)
  const plan = await planLogs([temp.join('gone.log')], 'auto')
  rmSync(temp.join('gone.log'))
  const run = importRun(plainOptions, null)
  expect(await run.read(plan.logs[0]!)).toEqual({
    path: temp.join('gone.log'),
    message: 'does not exist (any more)',
  })
  if (process.getuid?.() !== 0) {
    chmodSync(temp.join('two.gz'), 0)
    const { problems } = await importLogs([temp.join('two.gz')])
    expect(problems[0]!.message).toBe('cannot be read: permission denied')
  }
})

test('lines beyond the limit, NUL, invalid UTF-8, CRLF and a byte order mark', async () => {
  using temp = tempDir('access')
  const bytes = Buffer.concat([
    Buffer.from([0xef, 0xbb, 0xbf]),
    Buffer.from(line({ path: '/crlf' }).replace('\n', '\r\n')),
    Buffer.alloc(1024 * 1024, 0x61),
    Buffer.from('\n'),
    Buffer.from(line({ path: '/\\x00\\xff' })),
    Buffer.from(line({ path: '/raw-\xff-\0' }), 'latin1'),
    Buffer.alloc(70_000, 0),
    Buffer.from(`\n${line({ path: `/${'x'.repeat(5_000)}` })}`),
    Buffer.alloc(3 * 1024 * 1024, 0x62),
  ])
  writeFileSync(temp.join('a.log'), bytes)
  const { sums, events } = await importLogs([temp.join('a.log')])
  expect(sums).toMatchObject({ lines: 7, stored: 4, bad: 3 })
  expect(sums.badLines.map(({ line: number, message }) => [number, message])).toEqual([
    [2, 'is longer than 64 KiB'],
    [5, 'is longer than 64 KiB'],
    [7, 'is longer than 64 KiB'],
  ])
  const pages = ofType(events, 'agent.requested').map((event) => (event['metadata'] as { page: string }).page)
  expect(pages.slice(0, 3)).toEqual(['/crlf', '/\ufffd\ufffd', '/raw-\ufffd-\ufffd'])
  expect(pages[3]).toHaveLength(2_000)
})

test('a file that is no access log is refused, and so is a format without user agents', async () => {
  using temp = tempDir('access')
  writeFileSync(temp.join('x.log'), 'hello\nworld\n')
  writeFileSync(temp.join('common.log'), line().replace(/ "[^"]*" "[^"]*"\n$/, '\n'))
  const path = temp.join('x.log')
  expect(await failure(planLogs([path], 'auto'))).toBe(
    `${path} is not an access log: no known format fits its first 2 lines, which begin with "hello".`,
  )
  expect(await failure(planLogs([path], 'combined'))).toContain(
    '--format combined fits none of its first lines',
  )
  expect(await failure(planLogs([path], 'combind'))).toContain('"combind" is not a log format')
  expect(await failure(planLogs([temp.join('common.log')], 'auto'))).toContain('has no user agents')
})
