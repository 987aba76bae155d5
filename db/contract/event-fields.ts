/**
 * The table of all event fields that the store knows by name. Blocks, indexes, rollups, filters, limits, CSV columns,
 * OpenAPI and the dashboard's filters are derived from it.
 */
import type { Provenance } from './provenance.ts'

export interface EventField {
  name: string // in `EventRecord`, and as a query parameter
  /** Its path in the event's JSON; null: a fact of the record, which the appliance alone knows (`provenance.ts`). */
  path: readonly string[] | null
  /** Its number in dictionaries, postings and rollups, and its column in a block. Never reuse a number. */
  number: number
  /** How many values an organization interns; others are stored as hashes. 0: always a hash. */
  termsMax: number
  /** Whether rollups count its values. */
  counted: boolean
  /** Its list in `EventFilter`; null: not filterable and not in the segment index. */
  filter: string | null
  /** The first version of the segment index that includes it. Older segments are scanned for it. */
  indexVersion: number
  /** The longest value that ingest accepts. */
  charsMax: number
  /** Its position among the CSV columns (server/api/traces/export.ts); null: not a column. */
  csv: number | null
  /** Its label in the dashboard. */
  label: string
  /** Its description in OpenAPI, and an example value. */
  about: string
  example: string
}

/**
 * Numbers 14 to 16, 18 and 19 are block columns without a field (db/sql/events/blocks/block.ts); 22 is agents, 29
 * judgements, 30 and 31 are made when they are read (db/sql/events/blocks/fields.ts).
 */
export const eventFields = [
  {
    name: 'type',
    path: ['type'],
    number: 0,
    termsMax: 1_000,
    counted: false,
    filter: 'types',
    indexVersion: 1,
    charsMax: 64,
    csv: 4,
    label: 'type',
    about: 'The event type.',
    example: 'authz.*',
  },
  {
    name: 'outcome',
    path: ['outcome'],
    number: 1,
    termsMax: 100,
    counted: false,
    filter: 'outcomes',
    indexVersion: 1,
    charsMax: 32,
    csv: 5,
    label: 'outcome',
    about: 'The outcome.',
    example: 'blocked',
  },
  {
    name: 'siteId',
    path: ['siteId'],
    number: 2,
    termsMax: 1_000,
    counted: false,
    filter: 'siteIds',
    indexVersion: 1,
    charsMax: 200,
    csv: 1,
    label: 'site',
    about: 'The site id.',
    example: 'shop-acme',
  },
  {
    name: 'sessionId',
    path: ['sessionId'],
    number: 3,
    termsMax: 0,
    counted: false,
    filter: 'sessionIds',
    indexVersion: 1,
    charsMax: 200,
    csv: 2,
    label: 'session',
    about: 'The session id.',
    example: 'sess_1',
  },
  {
    name: 'class',
    path: ['agent', 'class'],
    number: 4,
    termsMax: 4_096,
    counted: true,
    filter: 'classes',
    indexVersion: 1,
    charsMax: 64,
    csv: 8,
    label: 'agent class',
    about: 'The agent class. Known values: webmcp, dom, screenshot, crawler.',
    example: 'dom',
  },
  {
    name: 'vendor',
    path: ['agent', 'vendor'],
    number: 5,
    termsMax: 4_096,
    counted: true,
    filter: 'vendors',
    indexVersion: 1,
    charsMax: 200,
    csv: 10,
    label: 'vendor',
    about: 'The agent vendor.',
    example: 'Operator',
  },
  {
    name: 'trust',
    path: ['agent', 'trust'],
    number: 6,
    termsMax: 4_096,
    counted: true,
    filter: 'trusts',
    indexVersion: 1,
    charsMax: 64,
    csv: 9,
    label: 'trust',
    about: 'The trust level of the agent. Known values, rising: detected, declared, verified, linked.',
    example: 'detected',
  },
  {
    name: 'tool',
    path: ['tool'],
    number: 7,
    termsMax: 4_096,
    counted: true,
    filter: 'tools',
    indexVersion: 1,
    charsMax: 200,
    csv: 6,
    label: 'tool',
    about: 'The tool name.',
    example: 'checkout.pay',
  },
  {
    name: 'protocol',
    path: ['metadata', 'protocol'],
    number: 8,
    termsMax: 4_096,
    counted: true,
    filter: 'protocols',
    indexVersion: 1,
    charsMax: 200,
    csv: 14,
    label: 'protocol',
    about: 'The protocol that proved the identity, such as web-bot-auth, oauth2 or mtls.',
    example: 'web-bot-auth',
  },
  {
    name: 'subject',
    path: ['metadata', 'subject'],
    number: 9,
    termsMax: 0,
    counted: false,
    filter: 'subjects',
    indexVersion: 1,
    charsMax: 2_000,
    csv: 15,
    label: 'identity',
    about: 'The verified subject.',
    example: '',
  },
  {
    name: 'decision',
    path: ['policy', 'decision'],
    number: 10,
    termsMax: 4_096,
    counted: true,
    filter: 'decisions',
    indexVersion: 1,
    charsMax: 64,
    csv: 11,
    label: 'decision',
    about: 'The decision. An evaluation without one counts as deny when blocked and allow on success.',
    example: 'deny',
  },
  {
    name: 'ruleId',
    path: ['policy', 'ruleId'],
    number: 11,
    termsMax: 4_096,
    counted: true,
    filter: null,
    indexVersion: 1,
    charsMax: 200,
    csv: 12,
    label: 'rule',
    about: 'The policy rule.',
    example: 'rule_1',
  },
  {
    name: 'reason',
    path: ['policy', 'reason'],
    number: 12,
    termsMax: 4_096,
    counted: true,
    filter: null,
    indexVersion: 1,
    charsMax: 2_000,
    csv: null,
    label: 'reason',
    about: 'The reason for the decision.',
    example: 'no signature',
  },
  {
    name: 'page',
    path: ['metadata', 'page'],
    number: 13,
    termsMax: 4_096,
    counted: true,
    filter: null,
    indexVersion: 1,
    charsMax: 2_000,
    csv: 13,
    label: 'page',
    about: 'The path of the page.',
    example: '/checkout',
  },
  {
    name: 'name',
    path: ['agent', 'name'],
    number: 20,
    termsMax: 4_096,
    counted: false,
    filter: 'names',
    indexVersion: 2,
    charsMax: 200,
    csv: 17,
    label: 'agent name',
    about: 'The bot name.',
    example: 'GPTBot',
  },
  {
    name: 'purpose',
    path: ['agent', 'purpose'],
    number: 21,
    termsMax: 4_096,
    counted: false,
    filter: 'purposes',
    indexVersion: 2,
    charsMax: 64,
    csv: 18,
    label: 'purpose',
    about: 'The bot purpose. Known values: training, search, assistant, user.',
    example: 'training',
  },
  {
    name: 'verdict',
    path: ['agent', 'verdict'],
    number: 23,
    termsMax: 4_096,
    counted: true,
    filter: 'verdicts',
    indexVersion: 3,
    charsMax: 64,
    csv: 19,
    label: 'verdict',
    about:
      'Whether the agent is who it claims to be. Known values: verified, consistent, contradicted, unverifiable, unknown.',
    example: 'contradicted',
  },
  {
    name: 'robots',
    path: ['agent', 'robots'],
    number: 24,
    termsMax: 4_096,
    counted: true,
    filter: 'robots',
    indexVersion: 4,
    charsMax: 64,
    csv: 20,
    label: 'robots.txt',
    about: 'Whether the robots.txt in force allowed a request. Known values: allowed, disallowed.',
    example: 'disallowed',
  },
  {
    name: 'door',
    path: null,
    number: 25,
    termsMax: 4_096,
    counted: false,
    filter: 'doors',
    indexVersion: 5,
    charsMax: 64,
    csv: 21,
    label: 'door',
    about:
      'How the event came in. Values: events, access-log, syslog, otlp, import, demo. Missing in events stored before ' +
      'the appliance recorded it.',
    example: 'events',
  },
  {
    name: 'key',
    path: null,
    number: 17,
    termsMax: 4_096,
    counted: false,
    filter: 'keys',
    indexVersion: 5,
    charsMax: 200,
    csv: 22,
    label: 'ingest key',
    about: 'The id of the ingest key that sent the event. Missing for files and the command line.',
    example: 'key_1',
  },
  {
    name: 'observedBy',
    path: null,
    number: 27,
    termsMax: 4_096,
    counted: false,
    filter: 'observers',
    indexVersion: 5,
    charsMax: 200,
    csv: 23,
    label: 'observed by',
    about:
      'Who saw the address or signature that was judged: appliance, or the id of the ingest key that reported it.',
    example: 'appliance',
  },
  {
    name: 'judgedBy',
    path: null,
    number: 26,
    termsMax: 4_096,
    counted: false,
    filter: 'judges',
    indexVersion: 5,
    charsMax: 64,
    csv: 25,
    label: 'judged by',
    about:
      'Who gave the verdict. Values: appliance, sender, unknown (stored before the appliance recorded judges).',
    example: 'appliance',
  },
  {
    name: 'evidence',
    path: null,
    number: 28,
    termsMax: 4_096,
    counted: false,
    filter: null,
    indexVersion: 5,
    charsMax: 2_000,
    csv: null,
    label: 'evidence',
    about: 'What the verdict rests on, as JSON: method, list, its date and digest, or the id of a key.',
    example: '',
  },
] as const satisfies readonly EventField[]

type Field = (typeof eventFields)[number]
export type EventFieldName = Field['name']

/** Fields of every event. All others may be missing, which is null in a record. */
type RequiredField = 'type' | 'outcome' | 'siteId' | 'sessionId'

/** Fields that all events of a batch share, which are therefore fields of `EventBatch`. */
const batchFields = ['door', 'key'] as const satisfies readonly EventFieldName[]
type BatchField = (typeof batchFields)[number]

/** The fields of an `EventRecord`. */
export const recordFields = eventFields.flatMap(({ name }) => (isBatchField(name) ? [] : [name]))

function isBatchField(name: EventFieldName): name is BatchField {
  return (batchFields as readonly string[]).includes(name)
}

export type EventFieldValues = {
  [name in Exclude<EventFieldName, BatchField>]: name extends RequiredField ? string : string | null
}

/** The lists of `EventFilter`, each of which matches any of its values. */
export type FilterLists = { [list in NonNullable<Field['filter']>]?: string[] }

type FilterableName = Extract<Field, { filter: string }>['name']

export interface FilterableField extends EventField {
  name: FilterableName
  filter: keyof FilterLists
}

/** Fields of the event's text, with their path in it. */
export const textFields = eventFields.flatMap((field) => {
  return field.path === null ? [] : [{ ...field, path: field.path as readonly string[] }]
})

export const filterableFields = eventFields.filter((field) => field.filter !== null) as FilterableField[]

/** Rollups count agents as a whole, so the names and purposes of agents are counted, too. */
const agentFields = ['name', 'purpose'] as const satisfies readonly EventFieldName[]
type AgentField = (typeof agentFields)[number]

/** Fields by whose values events are counted. */
export type CountedMember = Extract<Field, { counted: true }>['name'] | AgentField

export function isCountedMember(name: EventFieldName): name is CountedMember {
  const field = eventFields.find((each) => each.name === name)
  return field?.counted === true || (agentFields as readonly string[]).includes(name)
}

export const countedMembers: readonly CountedMember[] = eventFields
  .map(({ name }) => name)
  .filter(isCountedMember)

/** A field as a parameter of GET /v1/traces: contract §6 names the class `agentClass`. */
export type TraceParameter = Exclude<FilterableName, 'class'> | 'agentClass'

export function traceParameter(name: FilterableName): TraceParameter {
  return name === 'class' ? 'agentClass' : name
}

/** A field in the filters of pages, as in `filter=rule:rule_1`. */
export function pageFilterName(name: string): string {
  return name === 'ruleId' ? 'rule' : name
}

/** Fields by which pages filter: those with few values. Pages choose sites in another way. */
export const pageFields = eventFields.filter(({ name, termsMax, counted, filter }) => {
  return termsMax > 0 && (counted || filter !== null) && name !== 'siteId'
}) as Exclude<Field, { name: 'siteId' }>[]

/** The version of segments sealed by this release. */
export const indexVersion = Math.max(...eventFields.map((field) => field.indexVersion))

/** The limit of what `EventFilter.networks` finds. */
export const networkMatchesMax = 200_000

/** Contract §6: without `policy.decision` the outcome of an evaluation implies the decision. */
export function impliedDecision(type: string, outcome: string): string | null {
  if (type !== 'authz.evaluated') return null
  if (outcome === 'blocked') return 'deny'
  return outcome === 'success' ? 'allow' : null
}

/**
 * Filters of contract §6. A list matches any of its values; an absent or empty list does not filter; '' matches events
 * without the field; `types` accept a trailing `.*`.
 */
export interface EventFilter extends FilterLists {
  /** Networks of contradicted requests, such as 192.0.2.0/24; any of. At most the newest 200,000 requests are found. */
  networks?: string[]
  sinceMs?: number // inclusive, by occurredAt
  untilMs?: number // exclusive
  /** Matches within any text of the event, ignoring case. `tail` ignores it. */
  text?: string
}

export interface StoredEvent {
  seq: number // arrival number, ascending; clients get it encrypted only
  occurredAtMs: number // orders and filters it (db/rules/event-record.ts)
  receivedAtMs: number
  json: string
  provenance?: Provenance // when the query asks for it
}

/** A position in a listing: the next event is the newest one strictly before this pair. */
export interface EventPosition {
  occurredAtMs: number
  seq: number
}
