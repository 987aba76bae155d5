/** Decisions about agents: the first rule that matches, a record of each, and no way around a rule. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { CompleteEvent } from '../client/event.ts'
import { init } from '../node.ts'
import { publishableKey } from '../../tests/support/fake-appliance.ts'
import { type AgentPolicy, decide, type PolicyRule, sightglass } from './middleware.ts'
import { runs } from '../../tests/support/runs.ts'

const gpt = 'Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)'

/** A request that the middleware has seen. */
function recordVisit(path: string, userAgent = gpt) {
  const events: CompleteEvent[] = []
  const client = init({
    publishableKey,
    siteId: 'shop',
    exporters: [{ export: (event) => events.push(event) }],
  })
  const request = { url: path, method: 'GET', headers: { 'user-agent': userAgent } }
  const response = { statusCode: 200, writableFinished: true, getHeader: () => undefined, once: () => {} }
  sightglass(client)(request, response, () => {})
  return { request, events }
}

const rule = (id: string, overrides: Partial<PolicyRule> = {}): PolicyRule => ({
  id,
  decision: 'deny',
  ...overrides,
})

const policy: AgentPolicy = {
  rules: [
    rule('drafts', { path: '/drafts/*', reason: 'not published' }),
    rule('training', { purpose: 'training', path: ['/docs/*', '/docs'] }),
    rule('euro', { path: '/€/*' }),
    rule('suffix', { path: '*/secret' }),
    { id: 'pay', decision: 'review', tool: 'checkout.*', verdict: ['unverifiable', 'unknown'] },
    { id: 'openai', decision: 'allow', operator: 'openai', product: ['GPTBot', 'ChatGPT-User'] },
  ],
  otherwise: 'review',
}

test.each<[string, string | undefined, string, string]>([
  ['/drafts/one?q=1', undefined, 'deny', 'drafts'],
  ['/%64rafts/one', undefined, 'deny', 'drafts'],
  ['/docs/../drafts/one', undefined, 'deny', 'drafts'],
  ['//drafts//one', undefined, 'deny', 'drafts'],
  ['/DRAFTS/one', undefined, 'deny', 'drafts'],
  ['/%64rafts/%ff%', undefined, 'deny', 'drafts'],
  ['/docs/%ff/../../drafts/%zz', undefined, 'deny', 'drafts'],
  ['/%e2%82%ac/one', undefined, 'deny', 'euro'],
  [`/${'x'.repeat(2_000)}/secret`, undefined, 'deny', 'suffix'],
  ['/docs', undefined, 'deny', 'training'],
  ['/documents', undefined, 'allow', 'openai'],
  ['/cart', 'checkout.pay', 'review', 'pay'],
  ['/cart', 'cart.add', 'allow', 'openai'],
])('%s with the tool %p: %s by %s', (path, tool, decision, ruleId) => {
  const { request, events } = recordVisit(path)
  const toolDecision = decide(request, policy, tool === undefined ? {} : { tool })
  expect(toolDecision).toMatchObject({ decision, ruleId } as never)
  expect(events).toMatchObject([
    {
      type: 'authz.evaluated',
      outcome: decision === 'deny' ? 'blocked' : 'success',
      agent: { vendor: 'OpenAI', name: 'GPTBot' },
      policy: { decision, ruleId, reason: ruleId === 'drafts' ? 'not published' : `rule ${ruleId}` },
    },
  ])
  expect(events[0]?.tool).toBe(tool)
})

test('people match no rule about agents, and a request that was not seen is decided without a record', () => {
  const { request, events } = recordVisit('/docs', 'Mozilla/5.0 (X11; Linux x86_64) Chrome/156.0')
  expect(decide(request, policy)).toEqual({
    decision: 'review',
    ruleId: 'default',
    reason: 'no rule matched',
  })
  expect(events[0]).toMatchObject({ type: 'authz.evaluated', policy: { ruleId: 'default' } })
  expect(decide({}, { rules: [] })).toEqual({
    decision: 'allow',
    ruleId: 'default',
    reason: 'no rule matched',
  })
  expect(decide({}, { rules: [rule('all')] }).decision).toBe('deny')
})

test('a request that the middleware skipped is decided by its path and user agent', () => {
  const headers = { 'user-agent': gpt }
  const bySelf = (request: object) => decide(request, policy).ruleId
  expect(bySelf({ url: '/drafts/one?q', headers })).toBe('drafts')
  expect(bySelf({ url: '/one', originalUrl: '/drafts/one', headers: {} })).toBe('drafts')
  expect(bySelf({ url: '/', headers })).toBe('openai')
  expect(bySelf(new Request('http://shop.example/docs', { headers }))).toBe('training')
  for (const headers of [null, undefined, 5, [], { 'user-agent': ['a', 'b'] }])
    expect(bySelf({ url: '/', headers })).toBe('default')
})

test('a name of a tool that cannot be stored does not lose the record', () => {
  const { request, events } = recordVisit('/')
  decide(request, policy, { tool: `checkout.\0\ud800${'x'.repeat(300)}` })
  expect(events[0]?.tool).toBe(`checkout.\ufffd\ufffd${'x'.repeat(189)}`)
})

test.each<[unknown, string]>([
  [null, 'rules must be an array'],
  [{}, 'rules must be an array'],
  [{ rules: [], otherwise: 'maybe' }, 'otherwise must be allow, deny or review'],
  [{ rules: [{ decision: 'deny' }] }, 'every rule needs an id'],
  [{ rules: [{ id: 'a', decision: 'block' }] }, 'decision of a must be allow, deny or review'],
  [{ rules: [{ id: 'a', decision: 'deny', purposes: 'training' }] }, 'a has no condition purposes'],
  [{ rules: [{ id: 'a', decision: 'deny', path: 5 }] }, 'path of a must be a string or a list'],
  [{ rules: [null] }, 'every rule needs an id'],
  [{ rules: [{ id: 'a'.repeat(201), decision: 'deny' }] }, 'the id of a rule has at most 200 characters'],
  [{ rules: [{ id: 'a', decision: 'deny', reason: 5 }] }, 'reason of a must be a string of at most 2000'],
  [
    { rules: [{ id: 'a', decision: 'deny', reason: 'a'.repeat(2_001) }] },
    'reason of a must be a string of at most',
  ],
  [
    { rules: [{ id: 'a', decision: 'deny', purpose: 'trainig' }] },
    'purpose of a must be training, search, assis',
  ],
  [
    { rules: [{ id: 'a', decision: 'deny', verdict: ['unknown', 'bad'] }] },
    'verdict of a must be verified, cons',
  ],
])('the policy %j is refused', (bad, message) => {
  expect(() => decide({}, bad as AgentPolicy)).toThrow(`policy: ${message}`)
})

test('law: a pattern with * matches as the regular expression does, in linear time', () => {
  const letters = fc.stringMatching(/^[ab*]{0,12}$/)
  fc.assert(
    fc.property(letters, fc.stringMatching(/^[ab]{0,14}$/), (pattern, tool) => {
      const expected = new RegExp(`^${pattern.replaceAll('*', '.*')}$`).test(tool)
      expect(decide({}, { rules: [rule('a', { tool: pattern })] }, { tool }).decision).toBe(
        expected ? 'deny' : 'allow',
      )
    }),
    { numRuns: runs(2_000) },
  )
  const slow = { rules: [rule('a', { tool: `${'a*'.repeat(5_000)}b` })] }
  expect(decide({}, slow, { tool: 'a'.repeat(100_000) }).decision).toBe('allow')
})
