/** The state of a visit, and the event that each step produces. */
import type { Agent, Proof } from './cast.ts'
import type { DemoEvent, Step } from './event.ts'
import type { Random } from './random.ts'

/** Trust rises when an identity is accepted. */
export interface Visit {
  random: Random
  agent: Agent
  proof: Proof | null // the accepted one
  subject: string | null
  trust: string
  toolsFail: boolean // the tools behind the site are down
}

/** A step with the agent as the site knows it at this point of the visit. */
export function step(
  visit: Visit,
  type: string,
  outcome: DemoEvent['outcome'],
  page: string,
  more: Partial<Step> = {},
): Step {
  const { agent, trust, proof, subject, random } = visit
  return {
    type,
    outcome,
    afterMs: random.spread(700, 0.8),
    ...more,
    agent: {
      class: agent.class,
      trust,
      vendor: agent.vendor,
      ...agent.bot,
      confidence: confidenceOf(trust, random),
      userAgent: agent.userAgent,
      detectionVersion: agent.detectionVersion,
    },
    metadata: {
      demo: true,
      page,
      ...(proof ? { protocol: proof.protocol } : {}),
      ...(subject === null ? {} : { subject }),
      ...more.metadata,
    },
  }
}

function confidenceOf(trust: string, random: Random): number {
  const least = trust === 'detected' ? 0.62 : trust === 'declared' ? 0.8 : 0.95
  return Math.round((least + random.next() * (1 - least)) * 100) / 100
}

export function tenths(ms: number): number {
  return Math.round(ms * 10) / 10
}
