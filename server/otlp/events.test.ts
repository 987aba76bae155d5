/** What each convention's spans and records become, from the requests in `fixtures/`. */
import { describe, expect, test } from 'bun:test'
import { tracesRequest, type Json, type TestSpan } from '../../tests/support/otlp.ts'
import claudeCode from './fixtures/claude-code.json'
import codex from './fixtures/codex.json'
import genAi from './fixtures/gen-ai.json'
import mcp from './fixtures/mcp.json'
import openInference from './fixtures/open-inference.json'
import pydanticAi from './fixtures/pydantic-ai.json'
import vercelAi from './fixtures/vercel-ai.json'
import { operators } from '../../sdk/agents/agent-list.ts'
import { vendors } from './conventions.ts'
import { validateEvent } from '../ingest/check-event.ts'
import { limits } from '../limits.ts'
import type { Issue } from '../errors.ts'
import { eventsOfLog, eventsOfSpan, type Fate, type MappingOptions } from './events.ts'
import { jsonItems, jsonLists, readLog, readSpan } from './json.ts'

const agents: MappingOptions = { keep: 'agents', content: false }
const nowMs = Date.UTC(2026, 10, 23, 9)

function fates(request: object, options = agents): Fate[] {
  const body = Buffer.from(JSON.stringify(request))
  return 'resourceSpans' in request
    ? [...jsonItems(body, jsonLists.traces, readSpan)].map((span) => eventsOfSpan(span!, options, nowMs))
    : [...jsonItems(body, jsonLists.logs, readLog)].map((record) => eventsOfLog(record!, options, nowMs))
}

function eventsOf(request: object, options = agents): Json[] {
  const found = fates(request, options).flatMap((fate) => (fate.kind === 'mapped' ? fate.events : []))
  for (const event of found) {
    const issues: Issue[] = []
    validateEvent(event, [], true, issues)
    expect(issues).toEqual([])
  }
  return JSON.parse(JSON.stringify(found)) as Json[]
}

/** The parts of an event that a table of the convention shows. */
function row({ type, outcome, tool, agent, policy, sessionId, error, durationMs }: Json): unknown[] {
  const { vendor, name } = (agent ?? {}) as Json
  const { decision, ruleId } = (policy ?? {}) as Json
  return [sessionId, type, outcome, tool ?? decision ?? name ?? vendor, ruleId ?? error ?? durationMs]
}

function counts(request: object): Json {
  return Object.fromEntries(
    Object.entries(Object.groupBy(fates(request), ({ kind }) => kind)).map(([kind, all]) => [
      kind,
      all.length,
    ]),
  )
}

describe('conventions', () => {
  test('OpenTelemetry GenAI', () => {
    expect(eventsOf(genAi).map(row)).toEqual([
      ['conv_5j66', 'agent.invoked', 'success', 'Planner', 900],
      ['conv_5j66', 'tool.executed', 'success', 'get_weather', 120],
      ['conv_5j66', 'tool.executed', 'error', 'book', 'no answer within 5 s'],
      ['conv_5j66', 'memory.accessed', 'success', undefined, 120],
      ['conv_5j66', 'memory.updated', 'success', undefined, 120],
      ['conv_5j66', 'tool.executed', 'success', 'read_url', 120],
      ['conv_5j66', 'authz.evaluated', 'blocked', 'read_url', 'ATR-2026-00081'],
      ['conv_5j66', 'authz.evaluated', 'unknown', undefined, 'topics'],
      ['conv_5j66', 'tool.executed', 'success', 'pay', 120],
      ['conv_5j66', 'authz.evaluated', 'success', 'pay', 'pay-asks'],
    ])
    const [invoked, , , read, , , blocked, redacted, , asked] = eventsOf(genAi)
    expect(invoked).toMatchObject({
      siteId: 'trip-planner',
      agent: { vendor: 'OpenAI', name: 'Planner', trust: 'declared' },
      metadata: {
        agentId: 'asst_5j66',
        agentVersion: '2.1',
        model: 'gpt-5',
        tokens: { input: 97, output: 52 },
      },
    })
    expect(read).toMatchObject({ metadata: { memoryStore: 'preferences', records: 3 } })
    const id = '0af7651916cd43dd8448eb211c80319c:b7ad6b71692033'
    expect([blocked!['id'], redacted!['id'], asked!['id']]).toEqual([`${id}06:1`, `${id}07`, `${id}08:1`])
    expect(blocked!['policy']).toEqual({
      ...{ decision: 'deny', ruleId: 'ATR-2026-00081', reason: 'high', action: 'block' },
    })
    expect(redacted!['policy']).toEqual({ ruleId: 'topics', action: 'redact' })
    expect(asked).toMatchObject({ occurredAt: '2026-11-23T08:00:00.009Z', policy: { decision: 'review' } })
    expect(counts(genAi)).toEqual({ mapped: 8, 'model call': 1, 'left out': 1 })
  })

  test('MCP', () => {
    expect(eventsOf(mcp).map(row)).toEqual([
      ['191c4850', 'agent.detected', 'success', 'Claude Desktop', 120],
      ['191c4850', 'tool.surfaced', 'success', undefined, 120],
      ['191c4850', 'tool.executed', 'success', 'search', 120],
      ['191c4850', 'tool.executed', 'error', 'buy', 'tool_error'],
    ])
    expect(counts(mcp)).toEqual({ mapped: 4, 'left out': 1 })
  })

  test('OpenInference', () => {
    expect(eventsOf(openInference).map(row)).toEqual([
      ['session-7', 'agent.invoked', 'success', 'researcher', 700],
      ['session-7', 'tool.executed', 'success', 'search_documents', 120],
    ])
    expect(counts(openInference)).toEqual({ mapped: 2, 'model call': 2, 'left out': 1 })
  })

  test('Vercel AI SDK', () => {
    expect(eventsOf(vercelAi).map(row)).toEqual([['chat-19', 'tool.executed', 'success', 'addToCart', 40]])
    expect(eventsOf(vercelAi)[0]).toMatchObject({ metadata: { callId: 'toolu_01', scope: 'ai' } })
    expect(counts(vercelAi)).toEqual({ mapped: 1, 'model call': 1, 'left out': 1 })
  })

  test('Pydantic AI', () => {
    const trace = '0af7651916cd43dd8448eb211c80319c' // it has no id of a conversation
    expect(eventsOf(pydanticAi).map(row)).toEqual([
      [trace, 'agent.invoked', 'success', 'support_agent', 1500],
      [trace, 'tool.executed', 'success', 'get_balance', 12],
    ])
    expect(counts(pydanticAi)).toEqual({ mapped: 2, 'model call': 1, 'left out': 1 })
  })

  test('Claude Code', () => {
    expect(eventsOf(claudeCode).map(row)).toEqual([
      ['b1f3', 'authz.evaluated', 'success', 'Bash', 'config'],
      ['b1f3', 'tool.executed', 'success', 'Bash', 412],
      ['b1f3', 'authz.evaluated', 'blocked', 'Write', 'user_reject'],
      ['b1f3', 'tool.executed', 'error', 'Read', 'File does not exist'],
    ])
    expect(eventsOf(claudeCode)[0]).toMatchObject({
      siteId: 'claude-code',
      occurredAt: '2026-11-23T08:00:02.000Z',
      agent: { vendor: 'Anthropic', name: 'Claude Code', trust: 'declared' },
      policy: { decision: 'allow', ruleId: 'config' },
      metadata: { log: 'claude_code.tool_decision', callId: 'toolu_1', agentVersion: '2.4.1' },
    })
    expect(counts(claudeCode)).toEqual({ mapped: 4, 'model call': 1, 'left out': 1 })
  })

  test('Codex', () => {
    expect(eventsOf(codex).map(row)).toEqual([
      ['0199a213', 'agent.invoked', 'success', 'Codex', undefined],
      ['0199a213', 'authz.evaluated', 'success', 'shell', 'user'],
      ['0199a213', 'tool.executed', 'success', 'shell', 132],
      ['0199a213', 'authz.evaluated', 'blocked', 'apply_patch', 'config'],
    ])
    expect(counts(codex)).toEqual({ mapped: 4, 'model call': 2, 'left out': 1 })
  })
})

const all = { genAi, mcp, openInference, vercelAi, pydanticAi, claudeCode, codex }

describe('options', () => {
  test.each(Object.entries(all))(
    '%s: content is stored only on request, everything else always',
    (_, request) => {
      expect(JSON.stringify(eventsOf(request))).not.toContain('secret')
      const withContent = JSON.stringify(eventsOf(request, { keep: 'all', content: true }))
      if (JSON.stringify(request).includes('a secret')) expect(withContent).toContain('a secret')
    },
  )

  test('keep all stores model calls and other spans too', () => {
    const keepAll: MappingOptions = { keep: 'all', content: false }
    const types = eventsOf(genAi, keepAll).map(({ type }) => type)
    expect(types.filter((type) => type === 'model.called' || type === 'span.finished')).toEqual([
      'model.called',
      'span.finished', // apply_guardrail
      'span.finished', // GET
    ])
    expect(fates(genAi, keepAll).every(({ kind }) => kind === 'mapped')).toBe(true)
    expect(eventsOf(claudeCode, keepAll).map(({ type }) => type)).toContain('model.called')
  })
})

const tool = { 'gen_ai.operation.name': 'execute_tool' }
const eventOf = (span: TestSpan) =>
  eventsOf(tracesRequest([{ ...span, attributes: { ...tool, ...span.attributes } }]))[0]!

describe('one span', () => {
  test('long texts are cut to their limits, a long session id becomes its hash', () => {
    const long = '𐐷'.repeat(3_000)
    const event = eventOf({
      name: long,
      attributes: {
        'gen_ai.tool.name': long,
        'session.id': long,
        'gen_ai.agent.name': long,
        'error.type': long,
      },
    })
    expect([...(event['tool'] as string)]).toHaveLength(limits.toolCharsMax)
    expect([...(event['error'] as string)]).toHaveLength(limits.errorCharsMax)
    expect(event['sessionId']).toMatch(/^sha256:[0-9a-f]{64}$/)
  })

  test('an event stays below 64 KiB: attributes beyond are counted', () => {
    const values = Object.fromEntries(Array.from({ length: 900 }, (_, n) => [`a${n}`, '\u0001é'.repeat(20)]))
    const event = eventOf({ attributes: { ...values, huge: 'x'.repeat(20_000) } })
    expect(Buffer.byteLength(JSON.stringify(event))).toBeLessThan(limits.eventBytesMax)
    const { attributes, droppedAttributes } = event['metadata'] as {
      attributes: Json
      droppedAttributes: number
    }
    expect(Object.keys(attributes).length + droppedAttributes).toBe(902)
  })

  test('the name of the tool is in the name of the span when no attribute has it', () => {
    expect(eventOf({ name: 'execute_tool search' })['tool']).toBe('search')
    expect(eventOf({ name: 'search' })['tool']).toBe('search')
  })

  test('without times it occurred on arrival; one that ends before it starts has no duration', () => {
    const none = eventOf({ startTimeUnixNano: '0', endTimeUnixNano: '0' })
    expect([none['occurredAt'], none['durationMs']]).toEqual(['2026-11-23T09:00:00.000Z', undefined])
    expect(eventOf({ endTimeUnixNano: '1' })['durationMs']).toBeUndefined()
    const start = '1795420800000000001'
    expect(eventOf({ startTimeUnixNano: start })['occurredAt']).toBe('2026-11-23T08:00:00.000000001Z')
  })

  test('values of enums that do not exist yet are stored without a name', () => {
    const request = tracesRequest([{ attributes: tool, status: { code: 9 } }])
    const text = JSON.stringify(request).replace('"kind":1', '"kind":77')
    const [event] = eventsOf(JSON.parse(text) as object)
    expect(event).toMatchObject({ type: 'tool.executed', outcome: 'success' })
    expect(event!['metadata']).not.toHaveProperty('spanKind')
  })

  test('vendors have the names that detected agents have', () => {
    const vendorOf = (provider: string) =>
      (eventOf({ attributes: { 'gen_ai.provider.name': provider } })['agent'] as Json)['vendor']
    const sent = ['openai', 'openai.responses', 'aws.bedrock', 'Gemini', 'own.provider', 'constructor']
    expect(sent.map(vendorOf)).toEqual([
      ...['OpenAI', 'OpenAI', 'Amazon', 'Google', 'own.provider', 'constructor'],
    ])
    const known = new Set(operators.map(({ vendor }) => vendor))
    expect(Object.values(vendors).filter((vendor) => !known.has(vendor))).toEqual([])
  })

  test('an attribute that says there was no error is no error', () => {
    expect(eventOf({ attributes: { error: false } })['outcome']).toBe('success')
    expect(eventOf({ attributes: { error: true } })).toMatchObject({ outcome: 'error', error: 'failed' })
  })
})
