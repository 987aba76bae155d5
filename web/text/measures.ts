/** What the dashboard counts: each word with one definition, the same on every page and in every CSV file. */

export interface Measure {
  name: string // label of a headline, a chart and a column
  unit: string // "1,580 detections"
  type: string | null // the event type that it counts; null: several, as its definition says
  definition: string
}

const of = (name: string, type: string | null, definition: string): Measure => ({
  name,
  unit: name.toLowerCase(),
  type,
  definition,
})

/** The table "Numbers" in DESIGN.md holds the same words; `measures.test.ts` compares them. */
export const measures = {
  events: of('Events', null, 'Stored events of every type.'),
  detections: of('Detections', 'agent.detected', 'Events `agent.detected`. One agent may be detected often.'),
  missed: of('Missed', 'agent.missed', 'Events `agent.missed`.'),
  vendorsDetected: of('Vendors detected', null, 'Different `agent.vendor` of detections.'),
  vendors: of('Vendors', null, 'Different `agent.vendor` of events of every type.'),
  trustReached: of(
    'Verified in session',
    null,
    'Share of detections whose session has an event with the trust `verified` or `linked`, up to a day around the range.',
  ),
  identities: of(
    'Identities',
    'auth.identity_presented',
    'Events `auth.identity_presented`. One subject may present its identity often.',
  ),
  accepted: of('Accepted', null, 'Identities with the outcome `success`.'),
  notAccepted: of('Not accepted', null, 'Identities with any other outcome.'),
  verifiedIdentities: of(
    'Verified or linked',
    null,
    'Share of identities whose event has the trust `verified` or `linked`.',
  ),
  decisions: of('Decisions', 'authz.evaluated', 'Events `authz.evaluated`.'),
  allowed: of('Allowed', null, 'Decisions whose decision is `allow`.'),
  denied: of('Denied', null, 'Decisions whose decision is `deny`.'),
  review: of('For review', null, 'Decisions whose decision is `review`.'),
  undecided: of('Other or none', null, 'Decisions with another decision, or with none.'),
  blocked: of('Blocked', null, 'Decisions with the outcome `blocked`, whatever was decided.'),
  toolCalls: of('Tool calls', 'tool.executed', 'Events `tool.executed`.'),
  reads: of('Memory reads', 'memory.accessed', 'Events `memory.accessed`.'),
  updates: of('Memory updates', 'memory.updated', 'Events `memory.updated`.'),
} satisfies { [name: string]: Measure }

/** An event's decision is `policy.decision`; without it an `authz.evaluated` blocked is a deny, a success an allow. */
export const decisionNames: { readonly [decision: string]: string } = {
  allow: measures.allowed.name,
  deny: measures.denied.name,
  review: measures.review.name,
}

/** Those that stand beside a page in the navigation and at the head of Analytics, in the order of the pages. */
export const pageMeasures: readonly (Measure & { type: string })[] = [
  measures.detections,
  measures.identities,
  measures.decisions,
  measures.toolCalls,
  measures.reads,
].flatMap((one) => (one.type === null ? [] : [{ ...one, type: one.type }]))

export function measureOf(type: string): Measure | null {
  return Object.values(measures).find((one) => one.type === type) ?? null
}
