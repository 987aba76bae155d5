/** What spans and records become: the conventions in `fixtures/composed/`, and single ones with odd values. */
import { describe, expect, test } from 'bun:test'
import { attributes, readItems, tracesRequest, type Json, type TestSpan } from '../../tests/support/otlp.ts'
import genAi from './fixtures/composed/gen-ai.json'
import mcp from './fixtures/composed/mcp.json'
import pydanticAi from './fixtures/composed/pydantic-ai.json'
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
    ? readItems(jsonItems(body, jsonLists.traces, readSpan)).map((span) => eventsOfSpan(span, options, nowMs))
    : readItems(jsonItems(body, jsonLists.logs, readLog)).map((record) => eventsOfLog(record, options, nowMs))
}

function eventsOf(request: object, options = agents): Json[] {
  const events = fates(request, options).flatMap((fate) => (fate.kind === 'mapped' ? fate.events : []))
  for (const event of events) {
    const issues: Issue[] = []
    validateEvent(event, [], true, issues)
    expect(issues).toEqual([])
  }
  return JSON.parse(JSON.stringify(events)) as Json[]
}

/** The parts of an event that a table of the convention shows. */
function row({ type, outcome, tool, agent, policy, sessionId, error, durationMs }: Json): unknown[] {
  const { vendor, name } = (agent ?? {}) as Json
  const { decision, ruleId } = (policy ?? {}) as Json
  return [sessionId, type, outcome, tool ?? decision ?? name ?? vendor, ruleId ?? error ?? durationMs]
}

function counts(request: object): Json {
  return Object.fromEntries(
    Object.entries(Object.groupBy(fates(request), ({ kind }) => kind)).map(([kind, groupFates]) => [
      kind,
      groupFates.length,
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
    const [invoked, , , read, , , blocked, redacted, , reviewEvent] = eventsOf(genAi)
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
    expect([blocked!['id'], redacted!['id'], reviewEvent!['id']]).toEqual([
      `${id}06:1`,
      `${id}07`,
      `${id}08:1`,
    ])
    expect(blocked!['policy']).toEqual({
      decision: 'deny',
      ruleId: 'ATR-2026-00081',
      reason: 'high',
      action: 'block',
    })
    expect(redacted!['policy']).toEqual({ ruleId: 'topics', action: 'redact' })
    expect(reviewEvent).toMatchObject({
      occurredAt: '2026-11-23T08:00:00.009Z',
      policy: { decision: 'review' },
    })
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

  test('Pydantic AI', () => {
    const trace = '0af7651916cd43dd8448eb211c80319c' // it has no id of a conversation
    expect(eventsOf(pydanticAi).map(row)).toEqual([
      [trace, 'agent.invoked', 'success', 'support_agent', 1500],
      [trace, 'tool.executed', 'success', 'get_balance', 12],
    ])
    expect(counts(pydanticAi)).toEqual({ mapped: 2, 'model call': 1, 'left out': 1 })
  })
})

const allRequests = { genAi, mcp, pydanticAi }

describe('options', () => {
  test.each(Object.entries(allRequests))(
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
    const untimedEvent = eventOf({ startTimeUnixNano: '0', endTimeUnixNano: '0' })
    expect([untimedEvent['occurredAt'], untimedEvent['durationMs']]).toEqual([
      '2026-11-23T09:00:00.000Z',
      undefined,
    ])
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
    const sentProviders = [
      'openai',
      'openai.responses',
      'aws.bedrock',
      'Gemini',
      'own.provider',
      'constructor',
    ]
    expect(sentProviders.map(vendorOf)).toEqual([
      'OpenAI',
      'OpenAI',
      'Amazon',
      'Google',
      'own.provider',
      'constructor',
    ])
    const knownVendors = new Set(operators.map(({ vendor }) => vendor))
    expect([...vendors.values()].filter((vendor) => !knownVendors.has(vendor))).toEqual([])
  })

  test('an attribute that says there was no error is no error', () => {
    expect(eventOf({ attributes: { error: false } })['outcome']).toBe('success')
    expect(eventOf({ attributes: { error: true } })).toMatchObject({ outcome: 'error', error: 'failed' })
  })
})

describe('one log record', () => {
  const record = (name: string, values: { [name: string]: unknown }, scope = '') => ({
    resourceLogs: [
      {
        scopeLogs: [
          { scope: { name: scope }, logRecords: [{ eventName: name, attributes: attributes(values) }] },
        ],
      },
    ],
  })

  test.each([
    ['claude_code.tool_decision', 'reject', 'deny'],
    ['codex.tool_decision', 'approved_for_session', 'allow'],
    ['codex.tool_decision', 'denied', 'deny'],
    ['codex.tool_decision', 'toString', undefined],
  ])('%s %s', (name, decision, expected) => {
    const [event] = eventsOf(record(name, { tool_name: 'Write', decision, source: 'user_reject' }))
    expect(event!['policy']).toEqual({
      ...(expected === undefined ? {} : { decision: expected }),
      ruleId: 'user_reject',
      action: decision,
    })
    const outcome = { deny: 'blocked', allow: 'success' }[expected ?? ''] ?? 'unknown'
    expect([event!['outcome'], event!['tool']]).toEqual([outcome, 'Write'])
  })

  test('the name that a convention knows counts, whichever field has it', () => {
    const typeOf = (request: object) => eventsOf(request)[0]?.['type']
    expect(typeOf(record('src/main.rs:1', { 'event.name': 'codex.tool_result' }))).toBe('tool.executed')
    expect(typeOf(record('codex.tool_result', { 'event.name': 'other' }))).toBe('tool.executed')
    const scope = 'com.anthropic.claude_code.events'
    expect(typeOf(record('other', { 'event.name': 'tool_result' }, scope))).toBe('tool.executed')
    expect(typeOf(record('other', { 'event.name': 'tool_result' }))).toBeUndefined()
  })
})
