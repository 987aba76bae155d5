/** What the middleware records of a request: verdicts, identities, sessions, hostile headers, and what that costs. */
import { expect, test } from 'bun:test'
import type { CompleteEvent } from '../client/event.ts'
import type { Problem } from '../client/problem.ts'
import { packFormat } from '../judge/evidence-pack.ts'
import { init } from '../node.ts'
import { publishableKey } from '../../tests/support/fake-appliance.ts'
import { agentOf, type MiddlewareOptions, readEvidence, sightglass, visitOf } from './middleware.ts'

const gpt = 'Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)'
const seenOn = new Date().toISOString().slice(0, 10)
const evidence = readEvidence({
  format: packFormat,
  made: `${seenOn}T00:00:00Z`,
  hosts: [],
  directories: [],
  tokens: [],
  lists: [
    {
      list: 'gptbot',
      operator: 'OpenAI',
      products: { GPTBot: 'crawler' },
      networks: ['8.8.8.0/24'],
      source: 'https://example.com',
      seen: seenOn,
      published: seenOn,
      digest: 'a'.repeat(64),
    },
  ],
})

function setUp(options: MiddlewareOptions<object> = {}) {
  const events: CompleteEvent[] = []
  const problems: Problem[] = []
  const client = init({
    publishableKey,
    siteId: 'shop',
    exporters: [{ export: (event) => events.push(event) }],
  })
  const middleware = sightglass(client, { onError: (problem) => problems.push(problem), ...options })
  /** A request from its start to the end of its response. */
  const visit = async (
    headers: object,
    visitOptions: { ip?: string; url?: string; isAborted?: boolean } = {},
  ) => {
    const request = {
      method: 'GET',
      url: visitOptions.url ?? '/',
      headers: { 'user-agent': gpt, ...headers },
      ip: visitOptions.ip,
    }
    let close = (): void => {}
    const response = {
      statusCode: 200,
      writableFinished: visitOptions.isAborted !== true,
      getHeader: () => '12',
      once: (_: 'close', listener: () => void) => void (close = listener),
    }
    let isPassed = false
    middleware(request, response, () => (isPassed = true))
    expect(isPassed).toBe(true)
    close()
    await Bun.sleep(0)
    return request
  }
  return { visit, events, problems, client }
}

test('evidence judges the claim by the address, which is not recorded', async () => {
  const { visit, events } = setUp({ evidence })
  expect(agentOf(await visit({}, { ip: '8.8.8.8' }))).toEqual({
    operator: 'OpenAI',
    product: 'GPTBot',
    purpose: 'training',
    verdict: 'verified',
    evidence: { method: 'address', list: 'gptbot', listDate: seenOn },
  })
  expect(agentOf(await visit({}, { ip: '9.9.9.9' }))?.verdict).toBe('contradicted')
  const agents = events.filter(({ type }) => type === 'agent.requested').map(({ agent }) => agent)
  expect(agents).toMatchObject([
    { verdict: 'verified', trust: 'verified', evidence: { list: 'gptbot' } },
    { verdict: 'contradicted', trust: 'detected' },
  ])
  expect(JSON.stringify(events)).not.toMatch(/[89]\.[89]\.[89]/)
})

test('an identity is recorded, also one that arrives later; a rejected one is a problem', async () => {
  const identify = async (): Promise<{ subject: string; protocol: string }> => {
    await Bun.sleep(5)
    return { subject: 'agent-7', protocol: 'oauth2' }
  }
  const { visit, events } = setUp({ identify })
  await visit({})
  while (events.length < 2) await Bun.sleep(1)
  expect(events[1]).toMatchObject({
    agent: { trust: 'verified' },
    metadata: { subject: 'agent-7', protocol: 'oauth2' },
  })
  const failing = setUp({ identify: () => Promise.reject(new Error('database')) })
  await failing.visit({})
  while (failing.events.length < 2) await Bun.sleep(1)
  expect(failing.problems.map(({ code, message }) => [code, message])).toEqual([
    ['hook_failed', 'The identify option of sightglass threw: database.'],
  ])
})

test('one session per visitor, with its start; people have one, too, for your own events', async () => {
  const { visit, events } = setUp()
  for (const ip of ['192.0.2.1', '192.0.2.2', '192.0.2.1']) await visit({}, { ip })
  const types = events.map(
    ({ type, sessionId }) =>
      `${type} ${[...new Set(events.map((event) => event.sessionId))].indexOf(sessionId)}`,
  )
  expect(types).toEqual([
    'agent.detected 0',
    'agent.requested 0',
    'agent.detected 1',
    'agent.requested 1',
    'agent.requested 0',
  ])
  const person = await visit({ 'user-agent': 'Mozilla/5.0 (X11) Chrome/156.0' })
  expect(events.length).toBe(5)
  expect(person).toHaveProperty('agent', null)
  visitOf(person)?.session.trace({ type: 'tool.executed', tool: 'cart.add' })
  expect(events[5]?.sessionId).toStartWith('sess_')
})

test('hostile headers are cut and stored as text; an aborted response is an error', async () => {
  const { visit, events, problems } = setUp()
  const long = 'x'.repeat(5_000)
  await visit(
    { host: `\ud800${long}:80`, referer: `https://${long}/`, 'user-agent': `GPTBot ${long}` },
    { url: `/\0${long}#${long}` },
  )
  const [, requested] = events
  expect(requested?.metadata?.page).toBe(`/\ufffd${'x'.repeat(498)}`)
  expect(requested?.metadata?.['host']).toBe(`\ufffd${'x'.repeat(252)}`)
  expect(String(requested?.metadata?.['referrerHost']).length).toBe(253)
  expect(requested?.agent?.userAgent?.length).toBe(2_000)
  await visit(
    { host: ['a', 'b'], referer: undefined },
    { url: 'http://proxy.example/path?q', isAborted: true },
  )
  expect(events.at(-1)).toMatchObject({
    outcome: 'error',
    metadata: { page: '/path', aborted: true, bytes: 12 },
  })
  expect(problems).toEqual([])
})

test('wrong options throw at once', () => {
  const { client } = setUp()
  expect(() => sightglass({} as never)).toThrow('sightglass needs a client')
  expect(() => sightglass(client, { skip: 'no' as never })).toThrow('skip must be a function')
  for (const origin of ['shop.example', 'https://shop.example/path', 'ftp://shop.example', 'https://u@x'])
    expect(() => sightglass(client, { origins: [origin] })).toThrow('origins must be addresses such as')
})
