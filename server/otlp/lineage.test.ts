/** Spans without an agent have that of their nearest ancestor in the request, in whatever order the spans come. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { readItems, tracesRequest, type Json, type TestSpan } from '../../tests/support/otlp.ts'
import { eventsOfSpan, namedAgent } from './events.ts'
import { jsonItems, jsonLists, readSpan } from './json.ts'
import { makeLineage } from './lineage.ts'

const spanIdOf = (n: number): string => (n + 1).toString(16).padStart(16, '0')

/** The agent of each event by the number of its span. */
function agentsOf(spans: TestSpan[]): Map<number, Json | undefined> {
  const body = Buffer.from(JSON.stringify(tracesRequest(spans)))
  const read = readItems(jsonItems(body, jsonLists.traces, readSpan))
  const lineage = makeLineage(namedAgent)
  for (const span of read) lineage.add(span)
  return new Map(
    read.map((span) => {
      const fate = eventsOfSpan(span, { keep: 'all', content: false }, 0, lineage)
      const [event] = fate.kind === 'mapped' ? fate.events : []
      return [parseInt(span.spanId, 16) - 1, event?.['agent'] as Json | undefined]
    }),
  )
}

interface Node {
  parent: number | null
  name: string | null
}

const nodes = fc.integer({ min: 1, max: 12 }).chain((size) =>
  fc.array(
    fc.record({
      parent: fc.option(fc.nat({ max: size }), { nil: null }), // itself, a circle, or a span that is not sent
      name: fc.option(fc.constantFrom('Planner', 'Shopper', 'Critic'), { nil: null }),
    }),
    { minLength: size, maxLength: size },
  ),
)

/** Walks up until a name, a circle or the end. */
function expectedName(forestNodes: Node[], start: number): string | null {
  const passed = new Set<number>()
  for (
    let n: number | null = start;
    n !== null && n < forestNodes.length && !passed.has(n);
    n = forestNodes[n]!.parent
  ) {
    passed.add(n)
    if (forestNodes[n]!.name !== null) return forestNodes[n]!.name
  }
  return null
}

test('every span has the agent of its nearest ancestor that names one, circles included', () => {
  const forest = nodes.chain((forestNodes) =>
    fc.tuple(
      fc.constant(forestNodes),
      fc.shuffledSubarray([...forestNodes.keys()], {
        minLength: forestNodes.length,
        maxLength: forestNodes.length,
      }),
    ),
  )
  fc.assert(
    fc.property(forest, ([forestNodes, order]) => {
      const agents = agentsOf(
        order.map((n) => {
          const { parent, name } = forestNodes[n]!
          return {
            spanId: spanIdOf(n),
            ...(parent === null ? {} : { parentSpanId: spanIdOf(parent) }),
            attributes: name === null ? {} : { 'gen_ai.agent.name': name },
          }
        }),
      )
      for (const n of order)
        expect([n, agents.get(n)?.['name'] ?? null]).toEqual([n, expectedName(forestNodes, n)])
    }),
  )
})

test('the operator comes with the name, unless the span says who made its model', () => {
  const agent = {
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.agent.name': 'Shopper',
    'gen_ai.system': 'openai',
  }
  const agents = agentsOf([
    { spanId: spanIdOf(2), parentSpanId: spanIdOf(0), attributes: { 'gen_ai.system': 'anthropic' } },
    { spanId: spanIdOf(1), parentSpanId: spanIdOf(0) },
    { spanId: spanIdOf(0), attributes: agent },
  ])
  const shopper = { vendor: 'OpenAI', name: 'Shopper', trust: 'declared' }
  expect([agents.get(0), agents.get(1)]).toEqual([shopper, shopper])
  expect(agents.get(2)).toEqual({ ...shopper, vendor: 'Anthropic' })
})

test('a span of another trace with the same id is no ancestor', () => {
  const agents = agentsOf([
    { spanId: spanIdOf(0), traceId: 'a'.repeat(32), attributes: { 'gen_ai.agent.name': 'Shopper' } },
    { spanId: spanIdOf(1), traceId: 'b'.repeat(32), parentSpanId: spanIdOf(0) },
  ])
  expect(agents.get(1)).toBeUndefined()
})

test('a deep chain is walked once: its processor time grows with its length, not with the square', () => {
  const seconds = (length: number): number => {
    const attributes = { values: new Map(), dropped: 0 }
    const resource = attributes
    const common = {
      origin: { resource, scope: 'gemini-cli' },
      attributes,
      traceId: 'a'.repeat(32),
      name: '',
    }
    const details = { kind: 0, start: null, end: null, events: [], status: 0, message: '' }
    const spans = Array.from({ length }, (_, n) => ({
      ...common,
      ...details,
      spanId: spanIdOf(n),
      parentSpanId: n === 0 ? '' : spanIdOf(n - 1),
    }))
    const lineage = makeLineage((span) => (span.spanId === spanIdOf(0) ? { name: 'Root' } : undefined))
    const usageBefore = process.cpuUsage()
    for (const span of spans) lineage.add(span)
    for (const span of spans) lineage.inheritedBy(span)
    for (const span of spans.toReversed()) lineage.inheritedBy(span)
    const { user } = process.cpuUsage(usageBefore)
    expect(lineage.inheritedBy(spans[length - 1]!)).toEqual({ name: 'Root' })
    return user / 1e6
  }
  seconds(5_000)
  expect(seconds(100_000)).toBeLessThan(Math.max(seconds(5_000), 0.01) * 20 * 10) // the square would be 400 times
})
