/** Generates one tool call of a visit: the decision, then progress and execution, or the refusal. */
import type { Step } from './event.ts'
import { demoTools, type DemoTool } from './tools.ts'
import { step, tenths, type Visit } from './visit.ts'

const trustLevels = ['detected', 'declared', 'verified', 'linked']

const failures = [
  'upstream timeout after 10000 ms',
  'validation failed: owner is required',
  'not found: the item was deleted',
  'upstream rate limit reached, retry in 30 s',
  'network error while reading the response',
]

export function callTool(visit: Visit): Step[] {
  const { random } = visit
  const tool = random.weighted(demoTools)
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
  const { random, toolsFail } = visit
  const fails = random.chance(toolsFail ? 0.4 : tool.errorRate)
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
