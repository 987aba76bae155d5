/** Generates one visit: detection, identification, decisions, tool calls, pages and memory reads. */
import { browserAgents, crawlerAgents, toolAgents, type Agent, type AgentClass, type Proof } from './cast.ts'
import { demoTools, type DemoTool } from './tools.ts'
import type { DemoEvent, DemoEvidence, Step } from './event.ts'
import type { Random } from './random.ts'

/** Trust rises when an identity is accepted. */
interface Visit {
  random: Random
  agent: Agent
  proof: Proof | null // the accepted one
  subject: string | null
  trust: string
  toolsFail: boolean // the tools behind the site are down
  claim: Claim | null // of crawlers
  news: News
}

/** What is special about a visit of the last day (traffic.ts). */
export interface News {
  isImpostor?: true // of a published crawler that has none otherwise
  refusal?: { ruleId: string; reason: string } // of every page that the crawler asks for
  brokenTool?: string // the only tool that is called, and half of its calls fail
}

/** The verdict on a crawler's claim to be who its user agent names. */
interface Claim {
  verdict: 'verified' | 'unverifiable' | 'contradicted'
  evidence?: DemoEvidence
}

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

export function agentOf(agentClass: AgentClass, random: Random): Agent {
  if (agentClass === 'crawler') return random.weighted(crawlerAgents)
  const cast =
    agentClass === 'webmcp' ? toolAgents : browserAgents.filter((agent) => agent.class === agentClass)
  return random.weighted(cast)
}

export function visitSteps(agent: Agent, random: Random, toolsFail: boolean, news: News = {}): Step[] {
  const claim = agent.class === 'crawler' ? claimOf(agent, random, news) : null
  const trust = claim === null ? 'detected' : trustOf[claim.verdict]
  const visit: Visit = { random, agent, proof: null, subject: null, trust, toolsFail, claim, news }
  const steps = [detection(visit)]
  steps.push(...identification(visit))
  steps.push(...(agent.class === 'crawler' ? crawl(visit) : work(visit)))
  if (visit.proof && agent.class !== 'crawler' && random.chance(0.55)) {
    steps.push(step(visit, 'auth.identity_cleared', 'success', '/', { afterMs: random.spread(2_000, 0.6) }))
  }
  return steps
}

const trustOf = { verified: 'verified', unverifiable: 'declared', contradicted: 'detected' } as const

/** Crawlers whose impostors appear in the last day only. */
export const rarelyFaked = ['bingbot', 'Applebot', 'CCBot'] as const

/** One visit in nine claims to be a crawler and comes from outside of the networks that its operator publishes. */
function claimOf({ published, bot }: Agent, random: Random, { isImpostor }: News): Claim {
  if (published === null) return { verdict: 'unverifiable' }
  const { list, listDate, networks, isForUsers } = published
  const evidence = { method: 'address', list, listDate } as const
  const isOutside = random.chance(1 / 9) && !rarelyFaked.some((name) => name === bot?.name)
  if (!isOutside && isImpostor !== true) return { verdict: 'verified', evidence }
  if (!isForUsers) return { verdict: 'contradicted', evidence: { ...evidence, networks } }
  return { verdict: 'unverifiable', evidence: { ...evidence, networks, reason: 'user-triggered' } }
}

const assistants = [
  { vendor: 'OpenAI', name: 'ChatGPT', referrerHost: 'chatgpt.com', weight: 6 },
  { vendor: 'Perplexity', name: 'Perplexity', referrerHost: 'www.perplexity.ai', weight: 3 },
  { vendor: 'Google', name: 'Gemini', referrerHost: 'gemini.google.com', weight: 2 },
  { vendor: 'Anthropic', name: 'Claude', referrerHost: 'claude.ai', weight: 1 },
]

/** A person whom an assistant sent. */
export function referral(random: Random): Step {
  const { vendor, name, referrerHost } = random.weighted(assistants)
  return {
    type: 'agent.referred',
    outcome: 'success',
    afterMs: 0,
    agent: { vendor, name, purpose: 'assistant' },
    metadata: { demo: true, page: random.pick(shopPages), status: 200, referrerHost },
  }
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
  if (visit.claim?.verdict === 'contradicted') return [] // an impostor has no proof
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
  const { random, news } = visit
  const steps: Step[] = []
  const pages = random.whole(1, 5)
  for (let index = 0; index < pages; index++) {
    const isPrivate = random.chance(visit.trust === 'verified' ? 0.05 : 0.16)
    const page = isPrivate ? random.pick(['/account', '/checkout', '/admin']) : random.pick(shopPages)
    const closed = isPrivate || news.refusal !== undefined
    const refusal = news.refusal ?? { ruleId: `crawl:${page}`, reason: 'this path is closed to crawlers' }
    steps.push(
      step(visit, 'authz.evaluated', closed ? 'blocked' : 'success', page, {
        afterMs: random.spread(9_000, 0.9),
        durationMs: tenths(random.spread(0.8, 0.5)),
        policy: closed ? { decision: 'deny', ...refusal } : { decision: 'allow', ruleId: 'crawl:public' },
      }),
    )
    steps.push(request(visit, page, closed))
    if (!closed && random.chance(0.3)) {
      steps.push(
        step(visit, 'memory.accessed', 'success', page, { durationMs: tenths(random.spread(2, 0.5)) }),
      )
    }
  }
  return steps
}

/** The request as the access log of the site has it. */
function request(visit: Visit, page: string, closed: boolean): Step {
  const { random } = visit
  const status = closed ? 403 : random.chance(0.02) ? 404 : 200
  const bytes = status === 200 ? random.whole(2_000, 60_000) : 512
  const outcome = closed ? 'blocked' : status === 404 ? 'error' : 'success'
  return step(visit, 'agent.requested', outcome, page, {
    afterMs: 1,
    durationMs: tenths(random.spread(20, 0.7)),
    metadata: { demo: true, page, method: 'GET', status, bytes },
  })
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
  for (let index = 0; index < calls; index++) steps.push(...callTool(visit))
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

const trustLevels = ['detected', 'declared', 'verified', 'linked']

const failures = [
  'upstream timeout after 10000 ms',
  'validation failed: owner is required',
  'not found: the item was deleted',
  'upstream rate limit reached, retry in 30 s',
  'network error while reading the response',
]

/** The decision, then progress and execution, or the refusal. */
function callTool(visit: Visit): Step[] {
  const { random, news } = visit
  const tool = demoTools.find(({ name }) => name === news.brokenTool) ?? random.weighted(demoTools)
  const policy = decide(visit, tool)
  const allowed = policy.decision === 'allow'
  const decision = step(visit, 'authz.evaluated', allowed ? 'success' : 'blocked', tool.page, {
    afterMs: random.spread(visit.agent.class === 'screenshot' ? 7_000 : 2_600, 0.8),
    tool: tool.name,
    durationMs: tenths(random.spread(1.2, 0.5)),
    policy,
  })
  return [decision, ...(allowed ? execution(visit, tool) : refusal(visit, tool, policy))]
}

function decide(visit: Visit, tool: DemoTool): NonNullable<Step['policy']> {
  const { random, trust, agent } = visit
  if (agent.class === 'screenshot' && tool.needs !== 'nothing') {
    return { decision: 'deny', ruleId: 'class:screenshot', reason: 'screenshot agents may only read' }
  }
  if (tool.needs !== 'nothing' && trustLevels.indexOf(trust) < trustLevels.indexOf(tool.needs)) {
    return { decision: 'deny', ruleId: `tool:${tool.name}`, reason: `trust below ${tool.needs}` }
  }
  if (agent.vendor === 'unknown' && random.chance(0.45)) {
    return { decision: 'deny', ruleId: 'vendor:unknown', reason: 'more than 60 calls a minute' }
  }
  if (tool.needs === 'linked' && random.chance(0.3)) {
    return { decision: 'review', ruleId: `tool:${tool.name}`, reason: 'a person must confirm this' }
  }
  return { decision: 'allow', ruleId: tool.needs === 'nothing' ? 'tool:read' : `tool:${tool.name}` }
}

/** Most SDKs report a blocked call, too. */
function refusal(visit: Visit, tool: DemoTool, policy: NonNullable<Step['policy']>): Step[] {
  if (!visit.random.chance(0.7)) return []
  return [
    step(visit, 'tool.executed', 'blocked', tool.page, {
      afterMs: 3,
      tool: tool.name,
      policy,
    }),
  ]
}

function execution(visit: Visit, tool: DemoTool): Step[] {
  const { random, toolsFail, news } = visit
  const fails = random.chance(news.brokenTool === tool.name ? 0.5 : toolsFail ? 0.4 : tool.errorRate)
  const durationMs = tenths(
    fails && random.chance(0.4) ? 10_000 : random.spread(tool.medianMs * (toolsFail ? 3 : 1), 0.75),
  )
  const steps: Step[] = []
  let reportedMs = 0
  if (durationMs > 2_500) {
    reportedMs = durationMs / 2
    steps.push(step(visit, 'tool.progressed', 'success', tool.page, { afterMs: reportedMs, tool: tool.name }))
  }
  steps.push(
    step(visit, 'tool.executed', fails ? 'error' : 'success', tool.page, {
      afterMs: durationMs - reportedMs,
      tool: tool.name,
      durationMs,
      ...(fails ? { error: durationMs === 10_000 ? failures[0]! : random.pick(failures.slice(1)) } : {}),
    }),
  )
  return steps
}

/** A step with the agent as the site knows it at this point of the visit. */
function step(
  visit: Visit,
  type: string,
  outcome: DemoEvent['outcome'],
  page: string,
  extraFields: Partial<Step> = {},
): Step {
  const { agent, trust, proof, subject, random, claim } = visit
  return {
    type,
    outcome,
    afterMs: random.spread(700, 0.8),
    ...extraFields,
    agent: {
      class: agent.class,
      trust,
      vendor: agent.vendor,
      ...agent.bot,
      ...claim,
      confidence: confidenceOf(trust, random),
      userAgent: agent.userAgent,
      detectionVersion: agent.detectionVersion,
    },
    metadata: {
      demo: true,
      page,
      ...(proof ? { protocol: proof.protocol } : {}),
      ...(subject === null ? {} : { subject }),
      ...extraFields.metadata,
    },
  }
}

function confidenceOf(trust: string, random: Random): number {
  const minConfidence = trust === 'detected' ? 0.62 : trust === 'declared' ? 0.8 : 0.95
  return Math.round((minConfidence + random.next() * (1 - minConfidence)) * 100) / 100
}

function tenths(ms: number): number {
  return Math.round(ms * 10) / 10
}
