/** The measures of the dashboard: one definition each, for every page and CSV file. */

export interface Measure {
  name: string // label of headlines, charts and columns
  unit: string // "1,580 detections"
  type: string | null // the counted event type; null: several, see its definition
  definition: string
}

const createMeasure = (name: string, type: string | null, definition: string): Measure => ({
  name,
  unit: name.toLowerCase(),
  type,
  definition,
})

/** The table "Numbers" in DESIGN.md holds the same words; `measures.test.ts` compares them. */
export const measures = {
  events: createMeasure('Events', null, 'Stored events of all types: a number of Logs and Explore only.'),
  visits: createMeasure(
    'Visits',
    'agent.detected',
    'Visits begun: `agent.detected` events. The same agent can begin many visits. The unit where no site has requests in the range.',
  ),
  missed: createMeasure('Missed', 'agent.missed', '`agent.missed` events.'),
  vendorsDetected: createMeasure('Vendors detected', null, 'Distinct `agent.vendor` values of visits.'),
  vendors: createMeasure(
    'Vendors',
    null,
    'Distinct `agent.vendor` values in the unit of the range: of requests, else of visits.',
  ),
  trustReached: createMeasure(
    'Verified in session',
    null,
    'Share of visits whose session has an event with trust `verified` or `linked`, up to one day before or after the range.',
  ),
  identities: createMeasure(
    'Identities',
    'auth.identity_presented',
    '`auth.identity_presented` events. The same subject can present its identity many times.',
  ),
  accepted: createMeasure('Accepted', null, 'Identities with outcome `success`.'),
  notAccepted: createMeasure('Not accepted', null, 'Identities with any other outcome.'),
  verifiedIdentities: createMeasure(
    'Verified or linked',
    null,
    'Share of identities with trust `verified` or `linked`.',
  ),
  decisions: createMeasure('Decisions', 'authz.evaluated', '`authz.evaluated` events.'),
  allowed: createMeasure('Allowed', null, 'Decisions with value `allow`.'),
  denied: createMeasure('Denied', null, 'Decisions with value `deny`.'),
  review: createMeasure('For review', null, 'Decisions with value `review`.'),
  undecided: createMeasure('Other or none', null, 'Decisions with another value or none.'),
  blocked: createMeasure('Blocked', null, 'Decisions with outcome `blocked`, regardless of their value.'),
  requests: createMeasure(
    'Requests',
    'agent.requested',
    'Requests by agents: `agent.requested` events, from access logs and the middleware. The unit where a site has some in the range.',
  ),
  shareOfRequests: createMeasure(
    'Share of all requests',
    null,
    'Requests in access logs: those by agents divided by all, which are of agents, people, assets and other programs.',
  ),
  verified: createMeasure(
    'Verified',
    null,
    'Requests by agents with verdict `verified`. Verdicts that a sender reports do not count.',
  ),
  claimed: createMeasure('Claimed', null, 'Requests by agents with verdict `consistent` or `unverifiable`.'),
  contradicted: createMeasure(
    'Contradicted',
    null,
    'Requests by agents with verdict `contradicted`. Verdicts that a sender reports do not count.',
  ),
  refused: createMeasure(
    'Refused',
    null,
    'Requests by agents with outcome `blocked`: status 401, 402, 403, 407, 429, 451.',
  ),
  failed: createMeasure('Failed', null, 'Requests by agents with any other status from 400 on, or none.'),
  disallowed: createMeasure(
    'Disallowed',
    null,
    'Requests by agents that the site’s robots.txt disallowed at the time.',
  ),
  referrals: createMeasure(
    'Referrals',
    'agent.referred',
    '`agent.referred` events: people whom an assistant sent.',
  ),
  toolCalls: createMeasure('Tool calls', 'tool.executed', '`tool.executed` events.'),
  toolErrors: createMeasure('Tool errors', null, 'Tool calls with outcome `error`.'),
  reads: createMeasure('Memory reads', 'memory.accessed', '`memory.accessed` events.'),
  updates: createMeasure('Memory updates', 'memory.updated', '`memory.updated` events.'),
} satisfies { [name: string]: Measure }

/** `policy.decision`, or for `authz.evaluated` without it: blocked is a deny, success is an allow. */
export const decisionNames: { readonly [decision: string]: string } = {
  allow: measures.allowed.name,
  deny: measures.denied.name,
  review: measures.review.name,
}

/** The measures in the navigation and in the headlines of Analytics beside the unit, in the order of the pages. */
export const pageMeasures: readonly (Measure & { type: string })[] = [
  measures.identities,
  measures.decisions,
  measures.toolCalls,
  measures.reads,
].flatMap((measure) => (measure.type === null ? [] : [{ ...measure, type: measure.type }]))

export function measureOf(type: string): Measure | null {
  return Object.values(measures).find((measure) => measure.type === type) ?? null
}
