/** `decide`: what an agent may do, by a small policy, and a record of the decision with its rule and reason. */
import type { Purpose } from '../agents/agent-list.ts'
import { detectAgent } from '../agents/detect-agent.ts'
import type { RequestHeaders } from '../client/visitor-session.ts'
import type { Verdict } from '../judge/judge.ts'
import { pathOf, storable, visitOf, type Visit } from './visit.ts'

export type PolicyDecision = 'allow' | 'deny' | 'review'

/** A rule matches when all conditions that it has match. People and unknown programs have no purpose and no verdict. */
export interface PolicyRule {
  id: string
  decision: PolicyDecision
  reason?: string
  operator?: string | string[]
  product?: string | string[]
  purpose?: string | string[]
  verdict?: Verdict | Verdict[]
  /** Paths; `*` stands for any text, such as `/drafts/*`. */
  path?: string | string[]
  /** Names of tools; `*` stands for any text, such as `checkout.*`. */
  tool?: string | string[]
}

/** The first rule that matches decides. */
export interface AgentPolicy {
  rules: PolicyRule[]
  /** Without a matching rule. Default: `allow`. */
  otherwise?: PolicyDecision
}

export interface Decision {
  decision: PolicyDecision
  /** `default` without a matching rule. */
  ruleId: string
  reason: string
}

// The appliance rejects longer ones.
const toolCharsMax = 200
const idCharsMax = 200
const reasonCharsMax = 2_000
const conditions = ['operator', 'product', 'purpose', 'verdict', 'path', 'tool'] as const
const decisions = ['allow', 'deny', 'review']
/** Conditions with few values: a misspelt one would match nothing, and a rule that denies would not. */
const values: { [condition: string]: readonly string[] } = {
  purpose: ['training', 'search', 'assistant', 'other'] satisfies Purpose[],
  verdict: ['verified', 'consistent', 'contradicted', 'unverifiable', 'unknown'] satisfies Verdict[],
}

/**
 * Decides about a request, and records `authz.evaluated` if the middleware has seen it. A rule with `verdict` sees a
 * signature only after `await judgedAgentOf(request)`. Throws a `TypeError` for an invalid policy, so that a mistake
 * does not allow everything.
 */
export function decide(request: object, policy: AgentPolicy, { tool }: { tool?: string } = {}): Decision {
  requirePolicy(policy)
  const visit = visitOf(request)
  const facts = factsOf(visit ?? unseen(request), tool)
  const rule = policy.rules.find((candidate) =>
    conditions.every((name) => matches(candidate[name], facts[name])),
  )
  const decision = rule?.decision ?? policy.otherwise ?? 'allow'
  const result = { decision, ruleId: rule?.id ?? 'default', reason: rule?.reason ?? reasonOf(rule) }
  visit?.session.trace({
    type: 'authz.evaluated',
    outcome: decision === 'deny' ? 'blocked' : 'success',
    ...(tool === undefined ? {} : { tool: storable(tool, toolCharsMax) }),
    ...(visit.eventAgent === null ? {} : { agent: visit.eventAgent }),
    policy: {
      decision,
      ruleId: storable(result.ruleId, idCharsMax),
      reason: storable(result.reason, reasonCharsMax),
    },
    metadata: { page: visit.page, source: 'middleware' },
  })
  return result
}

const checked = new WeakSet<object>()

function requirePolicy(policy: AgentPolicy): void {
  if (checked.has(policy)) return
  const fault = (text: string): never => {
    throw new TypeError(`policy: ${text}`)
  }
  if (!Array.isArray(policy?.rules)) fault('rules must be an array')
  if (policy.otherwise !== undefined && !decisions.includes(policy.otherwise))
    fault('otherwise must be allow, deny or review')
  for (const rule of policy.rules) requireRule(rule, fault)
  checked.add(policy)
}

function requireRule(rule: PolicyRule, fault: (text: string) => never): void {
  const { id, decision, reason = '' } = rule ?? {}
  if (typeof id !== 'string' || id === '') fault('every rule needs an id')
  if (id.length > idCharsMax) fault(`the id of a rule has at most ${idCharsMax} characters`)
  if (!decisions.includes(decision)) fault(`decision of ${id} must be allow, deny or review`)
  if (typeof reason !== 'string' || reason.length > reasonCharsMax)
    fault(`reason of ${id} must be a string of at most ${reasonCharsMax} characters`)
  for (const name of Object.keys(rule)) {
    // A misspelt condition would match everything.
    if (!['id', 'decision', 'reason', ...conditions].includes(name)) fault(`${id} has no condition ${name}`)
  }
  for (const name of conditions) {
    for (const value of [rule[name] ?? []].flat()) {
      if (typeof value !== 'string') fault(`${name} of ${id} must be a string or a list`)
      if (values[name]?.includes(value) === false)
        fault(`${name} of ${id} must be ${values[name].join(', ')}`)
    }
  }
}

type Facts = { [name in (typeof conditions)[number]]: string | null }

type Seen = Pick<Visit, 'agent' | 'path'>

/** A request that the middleware skipped, or that never passed it: by what it says of itself. */
function unseen(request: object): Seen | null {
  const { url, originalUrl = url, headers } = request as { [field: string]: unknown }
  if (typeof originalUrl !== 'string') return null
  const detectedAgent = detectAgent(
    typeof headers === 'object' ? { headers: (headers ?? {}) as RequestHeaders } : null,
  )
  const agent = detectedAgent && {
    operator: detectedAgent.vendor,
    product: detectedAgent.name,
    purpose: detectedAgent.purpose,
    verdict: 'unverifiable' as const,
  }
  return { agent, path: pathOf(originalUrl) }
}

function factsOf(requestInfo: Seen | null, tool: string | undefined): Facts {
  const { operator = null, product = null, purpose = null, verdict = null } = requestInfo?.agent ?? {}
  return {
    operator,
    product,
    purpose,
    verdict,
    path: requestInfo && decodedPath(requestInfo.path),
    tool: tool ?? null,
  }
}

/** As a router reads it: percent-encoded letters and `..` would lead around a rule. */
function decodedPath(path: string): string {
  const merged = path.replace(/\/{2,}/g, '/')
  let normal = merged
  try {
    normal = new URL(`http://x${merged}`).pathname
  } catch {
    // A router may accept it all the same.
  }
  // Letters first, because one byte that is no UTF-8 would leave a whole run of them encoded.
  return normal
    .replace(/%[0-7][0-9a-f]/gi, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)))
    .replace(/(?:%[89a-f][0-9a-f])+/gi, decodedRun)
}

function decodedRun(run: string): string {
  try {
    return decodeURIComponent(run)
  } catch {
    return run
  }
}

/** Without a condition, everything matches. */
function matches(patterns: string | string[] | undefined, value: string | null): boolean {
  if (patterns === undefined) return true
  return (
    value !== null && [patterns].flat().some((pattern) => fits(pattern.toLowerCase(), value.toLowerCase()))
  )
}

/** `*` stands for any text. Takes linear time, whatever the pattern. */
function fits(pattern: string, value: string): boolean {
  const [first = '', ...parts] = pattern.split('*')
  if (parts.length === 0) return pattern === value
  const last = parts.pop() ?? ''
  if (!value.startsWith(first) || value.length < first.length + last.length || !value.endsWith(last))
    return false
  let position = first.length
  for (const part of parts) {
    const partIndex = value.indexOf(part, position)
    if (partIndex < 0) return false
    position = partIndex + part.length
  }
  return position <= value.length - last.length
}

function reasonOf(rule: PolicyRule | undefined): string {
  return rule === undefined ? 'no rule matched' : `rule ${rule.id}`
}
