/** Finds fields of an event that are probably misspelled or named differently, for the ingest health page. */
import { eventFields } from '../../db/contract/event-fields.ts'
import { nearest } from '../text/text.ts'

export interface NearMiss {
  path: string // as sent, such as latencyMs or agent.user_agent
  known: string // the field that was probably meant
}

interface Fields {
  [name: string]: unknown
}

function fieldsIn(object: string): string[] {
  return eventFields.filter(({ path }) => path[0] === object).map(({ name }) => name)
}

/** The fields that `checkEvent` reads, and those that other parts of the product write. */
const known: { readonly [inside: string]: readonly string[] } = {
  '': [
    ...['id', 'siteId', 'sessionId', 'occurredAt', 'type', 'outcome', 'tool', 'durationMs', 'error'],
    ...['agent', 'policy', 'metadata'],
  ],
  agent: [
    ...fieldsIn('agent'),
    ...['confidence', 'userAgent', 'detectionVersion', 'signals', 'verdict', 'evidence'],
  ],
  policy: fieldsIn('policy'),
}

/** Other names of fields, without case, `_`, `-` and spaces; at the top level unless a path is given. */
const aliases: { readonly [known: string]: string } = {
  id: 'eventid uuid guid',
  siteId: 'site website sitename',
  sessionId: 'session sid sess visitid',
  occurredAt: 'timestamp time ts date datetime createdat eventtime',
  type: 'eventtype event eventname kind agent.event',
  outcome: 'status result',
  tool: 'toolname agent.tool',
  durationMs: 'latencyms latency duration elapsed elapsedms took tookms responsetime responsetimems',
  error: 'err errormessage',
  'agent.class': 'agentclass agenttype agent.type agent.kind agent.category',
  'agent.vendor': 'vendor agentvendor agent.provider agent.company agent.operator',
  'agent.name': 'agentname botname bot agent.bot agent.botname agent.agentname',
  'agent.purpose': 'purpose agentpurpose agent.intent',
  'agent.trust': 'trust trustlevel agent.trustlevel',
  'agent.confidence': 'confidence agent.score',
  'agent.userAgent': 'useragent ua agent.ua',
  'policy.decision': 'decision policy.effect policy.action policy.result',
  'policy.ruleId': 'rule ruleid policy.rule policy.id',
  'policy.reason': 'reason policy.message',
  'metadata.page': 'page path url pageurl pathname metadata.path metadata.url metadata.pathname',
  'metadata.protocol': 'protocol authprotocol metadata.authprotocol',
  'metadata.subject': 'subject identity metadata.identity',
}

const byAlias = new Map(
  Object.entries(aliases).flatMap(([field, names]) =>
    names.split(' ').map((name): [alias: string, field: string] => [name, field]),
  ),
)
const nearLettersMin = 4
const namesMax = 64 // checked per object
const charsMax = 64
const foundMax = 8

/** The probable misspellings. A field that the event has under its correct name is never suggested. */
export function nearMisses(event: unknown): NearMiss[] {
  const found: NearMiss[] = []
  if (!isFields(event)) return found
  look(event, '', event, found)
  for (const inside of ['agent', 'policy', 'metadata']) {
    const fields = event[inside]
    if (isFields(fields)) look(fields, inside, event, found)
  }
  return found
}

function look(fields: Fields, inside: string, event: Fields, found: NearMiss[]): void {
  let looked = 0
  for (const name in fields) {
    if (++looked > namesMax || found.length >= foundMax) return
    if (name.length > charsMax || known[inside]?.includes(name) === true) continue
    const meant = meantBy(name, inside)
    if (meant === null || hasField(event, meant)) continue
    found.push({ path: inside === '' ? name : `${inside}.${name}`, known: meant })
  }
}

/** A cache: names recur and a lookup takes microseconds; hostile names only evict others. */
const remembered = new Map<string, string | null>()
const rememberedMax = 2_000

function meantBy(name: string, inside: string): string | null {
  const path = `${inside}.${name}`
  const before = remembered.get(path)
  if (before !== undefined) return before
  if (remembered.size >= rememberedMax) remembered.clear()
  const meant = findMeant(name, inside)
  remembered.set(path, meant)
  return meant
}

function findMeant(name: string, inside: string): string | null {
  const plain = name.toLowerCase().replaceAll(/[\s_.-]/g, '')
  const names = known[inside] ?? metadataNames
  const at = (field: string): string => (inside === '' ? field : `${inside}.${field}`)
  const same = names.find((field) => field.toLowerCase() === plain)
  // Metadata belongs to the sender: only a different spelling of a reserved name counts.
  if (same !== undefined) return same === name ? null : at(same)
  const alias = byAlias.get(inside === '' ? plain : `${inside}.${plain}`)
  if (alias !== undefined) return alias
  if (inside === 'metadata' || plain.length < nearLettersMin) return null
  const near = nearest(
    plain,
    names.map((field) => field.toLowerCase()),
  )
  const field =
    near === null || !isOneSlip(plain, near) ? undefined : names.find((one) => one.toLowerCase() === near)
  return field === undefined ? null : at(field)
}

const metadataNames = ['page', 'protocol', 'subject']

/** Stricter than `nearest`, which allows a third of the letters: custom fields may be that similar. */
function isOneSlip(typed: string, field: string): boolean {
  if (Math.abs(typed.length - field.length) > 1) return false
  const [short, long] = typed.length < field.length ? [typed, field] : [field, typed]
  let start = 0
  while (start < short.length && short[start] === long[start]) start++
  let end = 0
  while (end < short.length - start && short.at(-1 - end) === long.at(-1 - end)) end++
  const [left, right] = [short.length - start - end, long.length - start - end]
  const isSwap =
    left === 2 && right === 2 && short[start] === long[start + 1] && short[start + 1] === long[start]
  return Math.max(left, right) <= 1 || isSwap
}

/** Whether the event has the field under its correct name. */
function hasField(event: Fields, path: string): boolean {
  const dot = path.indexOf('.')
  const fields = dot < 0 ? event : event[path.slice(0, dot)]
  return isFields(fields) && Object.hasOwn(fields, path.slice(dot + 1))
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
