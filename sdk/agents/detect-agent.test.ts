/** Tests of agent detection against the samples of the package the names come from. */
import { expect, test } from 'bun:test'
import crawlers from 'crawler-user-agents'
import fc from 'fast-check'
import { quickestMs } from '../../tests/support/quickest.ts'
import { operators } from './agent-list.ts'
import { agentSources } from './agent-sources.ts'
import { detectAgent } from './detect-agent.ts'

const samples = crawlers.flatMap(({ instances = [] }) => instances)
const names = operators.flatMap(({ vendor, agents }) =>
  Object.entries(agents).map(([name, purpose]): [string, string, string] => [name, vendor, purpose]),
)

test('about forty operators, each with a source, no agent twice', () => {
  expect(operators.length).toBeGreaterThanOrEqual(40)
  expect(Object.keys(agentSources).toSorted()).toEqual(operators.map(({ vendor }) => vendor).toSorted())
  for (const source of Object.values(agentSources)) expect(new URL(source).protocol).toMatch(/^https?:$/)
  const lower = names.map(([name]) => name.toLowerCase())
  expect(new Set(lower).size).toBe(lower.length)
})

test.each(names)('%s is found in a real user agent, as %s, for %s', (name, vendor, purpose) => {
  const found = samples.map(detectAgent).filter((agent) => agent?.name === name)
  expect(found.length).toBeGreaterThan(0)
  expect(found[0]).toMatchObject({ class: 'crawler', trust: 'detected', vendor, purpose })
})

test('fits into an event as it is', () => {
  const userAgent =
    'Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)'
  expect(detectAgent(userAgent)).toEqual({
    ...{
      class: 'crawler',
      trust: 'detected',
      vendor: 'OpenAI',
      name: 'GPTBot',
      purpose: 'training',
      userAgent,
    },
    detectionVersion: '2026-11',
  })
})

test.each([
  'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36',
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Mobile/15E148 Safari/604.1',
  'curl/8.5.0',
  'Yetisports/1.0',
  'my-gptbot-clone',
  'notgptbot/1.0',
  '',
])('%s is nobody we know', (userAgent) => {
  expect(detectAgent(userAgent)).toBeNull()
})

test('every kind of request will do', () => {
  const userAgent = 'ClaudeBot/1.0'
  expect(detectAgent(new Request('http://x/', { headers: { 'user-agent': userAgent } }))?.vendor).toBe(
    'Anthropic',
  )
  expect(detectAgent({ headers: { 'user-agent': userAgent } })?.name).toBe('ClaudeBot')
  expect(detectAgent({ headers: {} })).toBeNull()
  expect(detectAgent(null)).toBeNull()
  expect(detectAgent(undefined)).toBeNull()
})

test('the most particular name wins, in any letter case', () => {
  expect(detectAgent('Googlebot-Image/1.0')?.name).toBe('Googlebot-Image')
  expect(detectAgent('compatible; GPTBOT/2')?.name).toBe('GPTBot')
})

test('law: whatever the header, it answers at most "detected", and keeps at most 2,000 characters', () => {
  const piece = fc.oneof(fc.string(), fc.constantFrom(...names.map(([name]) => name), ' ', '/', '('))
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 50 }), (pieces) => {
      const agent = detectAgent(pieces.join(''))
      if (agent === null) return
      expect(agent.trust).toBe('detected')
      expect(agent.userAgent.length).toBeLessThanOrEqual(2_000)
    }),
  )
})

test('of an endless header only the start is looked at', async () => {
  const endless = 'Google'.repeat(1_000_000)
  const hundred = (header: string) => () => {
    for (let n = 0; n < 100; n++) detectAgent(header)
  }
  const startMs = await quickestMs(hundred(endless.slice(0, 2_000)))
  expect(await quickestMs(hundred(endless))).toBeLessThan(5 * startMs + 5)
})
