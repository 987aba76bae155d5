/** Generates one visit: detection, identification, decisions, tool calls, pages and memory reads. */
import { browserAgents, crawlerAgents, toolAgents, type Agent, type AgentClass } from './cast.ts'
import type { Step } from './event.ts'
import type { Random } from './random.ts'
import { callTool } from './tool-call.ts'
import { step, tenths, type Visit } from './visit.ts'

const shopPages = [
  '/',
  '/products',
  '/products/kettle-2',
  '/products/lamp-9',
  '/categories/kitchen',
  '/blog',
  '/faq',
  '/docs/api',
]

export function agentOf(of: AgentClass, random: Random): Agent {
  if (of === 'crawler') return random.weighted(crawlerAgents)
  const cast = of === 'webmcp' ? toolAgents : browserAgents.filter((agent) => agent.class === of)
  return random.weighted(cast)
}

export function visitSteps(agent: Agent, random: Random, toolsFail: boolean): Step[] {
  const visit: Visit = { random, agent, proof: null, subject: null, trust: 'detected', toolsFail }
  const steps = [detection(visit)]
  steps.push(...identification(visit))
  steps.push(...(agent.class === 'crawler' ? crawl(visit) : work(visit)))
  if (visit.proof && agent.class !== 'crawler' && random.chance(0.55)) {
    steps.push(step(visit, 'auth.identity_cleared', 'success', '/', { afterMs: random.spread(2_000, 0.6) }))
  }
  return steps
}

function detection(visit: Visit): Step {
  const { random } = visit
  // Some agents are only recognized later by their behaviour.
  const missed = visit.agent.class === 'screenshot' && random.chance(0.12)
  const page = random.pick(shopPages)
  return step(visit, missed ? 'agent.missed' : 'agent.detected', missed ? 'error' : 'success', page, {
    afterMs: 0,
    durationMs: tenths(random.spread(4, 0.5)),
  })
}

function identification(visit: Visit): Step[] {
  const { random, agent } = visit
  if (agent.proofs.length === 0 || !random.chance(agent.presents)) return []
  const proof = random.weighted(agent.proofs)
  const subject = proof.subject.replace('{n}', String(random.whole(1, 400)))
  const accepted = random.chance(0.94)
  if (accepted) Object.assign(visit, { proof, subject, trust: proof.trust })
  const presented = step(
    visit,
    'auth.identity_presented',
    accepted ? 'success' : 'error',
    random.pick(shopPages),
    {
      durationMs: tenths(random.spread(28, 0.6)),
    },
  )
  if (!accepted) {
    presented.error = random.pick([
      'signature expired',
      'unknown key id',
      'token audience does not match',
      'clock skew above 60 s',
    ])
    // A rejected identity has a protocol, but no subject.
    presented.metadata.protocol = proof.protocol
  }
  return [presented]
}

function crawl(visit: Visit): Step[] {
  const { random } = visit
  const steps: Step[] = []
  const pages = random.whole(1, 5)
  for (let at = 0; at < pages; at++) {
    const closed = random.chance(visit.trust === 'verified' ? 0.05 : 0.16)
    const page = closed ? random.pick(['/account', '/checkout', '/admin']) : random.pick(shopPages)
    steps.push(
      step(visit, 'authz.evaluated', closed ? 'blocked' : 'success', page, {
        afterMs: random.spread(9_000, 0.9),
        durationMs: tenths(random.spread(0.8, 0.5)),
        policy: closed
          ? { decision: 'deny', ruleId: `crawl:${page}`, reason: 'this path is closed to crawlers' }
          : { decision: 'allow', ruleId: 'crawl:public' },
      }),
    )
    if (!closed && random.chance(0.3)) {
      steps.push(
        step(visit, 'memory.accessed', 'success', page, { durationMs: tenths(random.spread(2, 0.5)) }),
      )
    }
  }
  return steps
}

function work(visit: Visit): Step[] {
  const { random, agent } = visit
  const steps: Step[] = []
  if (agent.class === 'webmcp') {
    steps.push(step(visit, 'tool.surfaced', 'success', '/', { durationMs: tenths(random.spread(12, 0.4)) }))
  }
  if (random.chance(0.6)) {
    steps.push(
      step(visit, 'memory.accessed', 'success', random.pick(shopPages), {
        durationMs: tenths(random.spread(3, 0.5)),
      }),
    )
  }
  const calls = agent.class === 'webmcp' ? random.whole(2, 9) : random.whole(1, 4)
  for (let at = 0; at < calls; at++) steps.push(...callTool(visit))
  if (random.chance(0.08)) {
    steps.push(
      step(visit, 'memory.updated', 'success', random.pick(shopPages), {
        durationMs: tenths(random.spread(6, 0.5)),
      }),
    )
  }
  if (random.chance(0.006)) {
    steps.push(
      step(visit, 'sdk.error', 'error', random.pick(shopPages), {
        error: 'trace buffer full, 12 events dropped',
      }),
    )
  }
  return steps
}
