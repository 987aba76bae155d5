/** `site policy`, `serve --robots` and the verdicts of imported requests, with the executable. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { startAppliance, type Appliance, type Exit } from '../support/binary.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(60_000) // the executable starts several times, on a machine that may be busy

const dayMs = 24 * 3_600_000
/** Noon of yesterday: the test of a file counts the last 30 days. */
const noon = Math.floor(Date.now() / dayMs) * dayMs - dayMs / 2
const files = tempDir('robots')
const watched = files.join('watched.txt')
let appliance: Appliance

beforeAll(async () => {
  writeFileSync(watched, 'User-agent: *\nDisallow: /watched\n')
  appliance = await startAppliance({ args: ['--robots', `blog=${watched}`] })
})
afterAll(async () => {
  await appliance.stop()
  files.remove()
})

function expectSuccess({ code, stdout, stderr }: Exit): string {
  expect([code, stderr]).toEqual([0, ''])
  return stdout
}

const policy = async (...args: string[]): Promise<string> =>
  expectSuccess(await appliance.cli('site', 'policy', ...args))
const refused = async (...args: string[]): Promise<[number, string]> => {
  const { code, stderr } = await appliance.cli('site', 'policy', ...args)
  return [code, stderr]
}

function file(name: string, text: string): string {
  writeFileSync(files.join(name), text)
  return files.join(name)
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

function logLine(atMs: number, path: string, agent: string): string {
  const [date = '', time = ''] = new Date(atMs).toISOString().split('T')
  const [year, month, day] = date.split('-')
  const timeText = `${day}/${months[Number(month) - 1]}/${year}:${time.slice(0, 8)} +0000`
  return `203.0.113.9 - - [${timeText}] "GET ${path} HTTP/1.1" 200 5 "-" "${agent}"\n`
}

const gptBot = 'Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)'
const claude = 'Mozilla/5.0 (compatible; ClaudeBot/1.0; +claudebot@anthropic.com)'

interface Event {
  type: string
  agent: { name: string; robots?: string; robotsRule?: { version: number; from: string; line?: number } }
  metadata: { page: string }
}

test('a policy changed at noon judges morning requests by the old one', async () => {
  const old = file('old.txt', 'User-agent: GPTBot\nDisallow: /shop\n')
  const changed = file('new.txt', 'User-agent: *\nAllow: /shop/open\nDisallow: /blog\n')
  const [morning, late] = [noon - 3_600_000, noon + 3_600_000].map((ms) => new Date(ms).toISOString())
  await policy('set', '--site', 'shop', '--robots', old, '--from', morning!)
  const set = await policy(
    'set',
    '--site',
    'shop',
    '--robots',
    changed,
    '--from',
    new Date(noon).toISOString(),
  )
  expect(set).toStartWith('Stored version 2 of the robots.txt of shop, in force from ')
  expect(set).toContain('with 2 rules.')
  expect(await policy('set', '--site', 'shop', '--robots', changed, '--from', late!)).toStartWith(
    'Nothing changed',
  )

  const requests: [atMs: number, path: string, agent: string][] = [
    [noon - 2 * 3_600_000, '/shop/early', gptBot],
    [noon - 1_000, '/shop/1', gptBot],
    [noon - 1_000, '/blog/1', gptBot],
    [noon - 1_000, '/shop/1', claude],
    [noon, '/shop/2', gptBot],
    [noon, '/blog/2?q=1', claude],
  ]
  const log = file('access.log', requests.map((request) => logLine(...request)).join(''))
  expectSuccess(await appliance.cli('import', 'access', log, '--site', 'shop'))
  const lines = expectSuccess(await appliance.cli('export', 'traces'))
    .trim()
    .split('\n')
    .slice(0, -1)
  const events = lines
    .map((line) => JSON.parse(line) as Event)
    .filter(({ type }) => type === 'agent.requested')
  const verdicts = events.map(({ agent, metadata }) => {
    const { robots = null, robotsRule } = agent
    return [metadata.page, agent.name, robots, robotsRule?.version ?? null, robotsRule?.line ?? null]
  })
  expect(verdicts.toSorted()).toEqual([
    ['/blog/1', 'GPTBot', 'allowed', 1, null],
    ['/blog/2', 'ClaudeBot', 'disallowed', 2, 3],
    ['/shop/1', 'ClaudeBot', 'allowed', 1, null],
    ['/shop/1', 'GPTBot', 'disallowed', 1, 2],
    ['/shop/2', 'GPTBot', 'allowed', 2, null],
    ['/shop/early', 'GPTBot', null, null, null],
  ])
  expect(events.find(({ metadata }) => metadata.page === '/shop/2')!.agent.robotsRule!.from).toBe(
    new Date(noon).toISOString(),
  )
})

test('a new file is tested against the stored requests', async () => {
  const next = file('next.txt', 'User-agent: GPTBot\nDisallow: /\nDisallow: /*?q=\nnonsense\n')
  const text = await policy('test', '--site', 'shop', '--robots', next)
  expect(text).toContain('6 requests of the last 30 days: 4 would be disallowed, 2 were.')
  expect(text).toContain('1 rule with a query cannot match')
  expect(text).toContain('Crawlers ignore 1 line.')
  const result = JSON.parse(await policy('test', '--site', 'shop', '--robots', next, '--json'))
  expect(result).toMatchObject({ requests: 6, disallowed: 4, wasDisallowed: 2, complete: true })
  expect(result.agents).toMatchObject([
    { name: 'GPTBot', requests: 4, disallowed: 4, wasDisallowed: 1 },
    { name: 'ClaudeBot', requests: 2, disallowed: 0, wasDisallowed: 1 },
  ])
  expect(await policy('test', '--site', 'nowhere', '--robots', next)).toContain('No requests by agents')
})

test('Applebot obeys the group of Googlebot, and two names on one line are reported', async () => {
  const robots = file('apple.txt', 'User-agent: Googlebot\nAllow: /\n\nUser-agent: *\nDisallow: /\n')
  const appleBot =
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_5) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/13.1.1 ' +
    'Safari/605.1.15 (Applebot/0.1; +http://www.apple.com/go/applebot)'
  await policy('set', '--site', 'apple', '--robots', robots, '--from', new Date(noon - 1_000).toISOString())
  const log = file('apple.log', logLine(noon, '/apple', appleBot))
  expectSuccess(await appliance.cli('import', 'access', log, '--site', 'apple'))
  const [event] = expectSuccess(await appliance.cli('export', 'traces'))
    .trim()
    .split('\n')
    .flatMap((line) => (line.includes('Applebot') ? [JSON.parse(line) as Event] : []))
    .filter(({ type }) => type === 'agent.requested')
  expect(event!.agent).toMatchObject({
    name: 'Applebot',
    robots: 'allowed',
    robotsRule: { version: 1, line: 2 },
  })

  const twoNames = file('two.txt', 'User-agent: GPTBot, CCBot\nDisallow: /\n')
  const warning = '1 User-agent line names no crawler. Write one name per line.'
  expect(await policy('set', '--site', 'two', '--robots', twoNames)).toContain(warning)
  const shown = await policy('show', '--site', 'two')
  expect(shown).toContain(warning)
  expect(shown).toContain('Line 1: no crawler is named GPTBot, CCBot')
  expect(await policy('test', '--site', 'shop', '--robots', twoNames)).toContain(warning)
})

test('versions are listed and shown, and a watched file makes one', async () => {
  const { versions } = JSON.parse(await policy('list', '--site', 'shop', '--json'))
  expect(versions).toMatchObject([
    { version: 2, from: new Date(noon).toISOString(), until: null, setBy: 'cli' },
    { version: 1, until: new Date(noon).toISOString() },
  ])
  const shown = await policy('show', '--site', 'shop')
  expect(shown).toStartWith('Version 2 of shop, from ')
  expect(shown).toContain('     3  Disallow: /blog\n')
  expect(await policy('show', '1', '--site', 'shop')).toContain('     2  Disallow: /shop\n')
  for (const endMs = performance.now() + 20_000; ; await Bun.sleep(100)) {
    const list = await policy('list', '--site', 'blog')
    if (list.includes('in force')) break
    if (performance.now() > endMs) throw new Error(`the watched file made no version: ${list}`)
  }
  expect(await policy('show', '--site', 'blog')).toContain('Disallow: /watched')
  const audit = expectSuccess(await appliance.cli('export', 'audit', '--json'))
  expect(audit).toContain('site.robots_set')
})

test('invalid input is refused with what to do', async () => {
  const long = file('long.txt', '#'.repeat(500 * 1024 + 1))
  expect(await refused('set', '--site', 'x', '--robots', long)).toEqual([
    1,
    expect.stringContaining('500 KiB'),
  ])
  expect(await refused('set', '--site', 'x', '--robots', files.join('no'))).toEqual([
    1,
    expect.stringContaining('cannot be read'),
  ])
  expect(await refused('set', '--site', 'x')).toEqual([2, expect.stringContaining('--robots FILE')])
  expect(await refused('set', '--robots', long)).toEqual([2, expect.stringContaining('--site')])
  const next = ['set', '--site', 'x', '--robots', file('x.txt', '')]
  expect(await refused(...next, '--from', 'noon')).toEqual([
    2,
    expect.stringContaining('2026-11-20T12:00:00Z'),
  ])
  expect(await refused(...next, '--from', '2199-01-01T00:00:00Z')).toEqual([
    1,
    expect.stringContaining('in the future'),
  ])
  expect(await refused('show', '--site', 'x')).toEqual([1, expect.stringContaining('no such robots.txt')])
  expect(await refused('list', '--site', 'x', '--from', '2026-11-20T12:00:00Z')).toEqual([
    2,
    expect.stringContaining('--from is not an option'),
  ])
  expect(await refused('show', 'one', '--site', 'x')).toEqual([2, expect.stringContaining('whole number')])
  expect(await refused('drop', '--site', 'x')).toEqual([
    2,
    expect.stringContaining('set, show, list or test'),
  ])
})
