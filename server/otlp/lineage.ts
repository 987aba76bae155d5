/**
 * The agents of a request's spans by descent: most instrumentations name the agent only on its own span, and the calls
 * of its tools are children of that.
 */
import { agentNaming } from './conventions.ts'
import type { Span } from './model.ts'

interface Agent {
  [field: string]: unknown
}

export interface Lineage {
  /** Notes a span of the request. All are noted before the first is mapped, because children end before parents. */
  add(span: Span): void
  /** The agent of the nearest ancestor in the request that names one. */
  inheritedBy(span: Span): Agent | undefined
}

/** `namedBy` gives the agent that a span names itself. */
export function makeLineage(namedBy: (span: Span) => Agent | undefined): Lineage {
  const agents = new Map<string, Agent>() // of spans that name one
  const parents = new Map<string, string>() // of all others that have a parent
  const inherited = new Map<string, Agent | null>() // remembered, so that a chain is walked once

  function find(start: string): Agent | null {
    const passed: string[] = []
    let agent: Agent | null = null
    for (let key: string | undefined = start; key !== undefined; key = parents.get(key)) {
      const knownAgent = agents.get(key) ?? inherited.get(key)
      if (knownAgent !== undefined) {
        agent = knownAgent
        break
      }
      inherited.set(key, null) // ends a circle, too
      passed.push(key)
    }
    for (const key of passed) inherited.set(key, agent)
    return agent
  }

  return {
    add(span) {
      const key = keyOf(span.traceId, span.spanId)
      const agent = mayNameAgent(span) ? namedBy(span) : undefined
      if (agent !== undefined) agents.set(key, agent)
      else if (span.parentSpanId !== '') parents.set(key, keyOf(span.traceId, span.parentSpanId))
    },
    inheritedBy({ traceId, parentSpanId }) {
      if (agents.size === 0 || parentSpanId === '') return undefined
      return find(keyOf(traceId, parentSpanId)) ?? undefined
    },
  }
}

/** Reading all attributes of every span once more would cost as much as decoding it. */
function mayNameAgent({ attributes, origin }: Span): boolean {
  return (
    agentNaming.scopes.has(origin.scope) || agentNaming.attributes.some((name) => attributes.values.has(name))
  )
}

function keyOf(traceId: string, spanId: string): string {
  return traceId + spanId
}
