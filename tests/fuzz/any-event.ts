/** Random events for tests: valid ones, and changed ones of any kind. */
import fc from 'fast-check'

const word = fc.stringMatching(/^[a-z][a-z0-9_-]{0,9}$/)
const name = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 20 })
  .filter((value) => !value.includes('\0'))
const id = name.filter((value) => value !== '.' && value !== '..')
const maybe = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: null })
const text = maybe(name)
const time = fc.integer({ min: 0, max: Date.UTC(2201, 0, 1) - 1 }).map((ms) => new Date(ms).toISOString())

/** Events that pass every check, with optional fields present, null or missing. */
export const validEvent = fc.record(
  {
    id,
    siteId: id,
    sessionId: id,
    occurredAt: time,
    type: fc.oneof(
      fc.constant('authz.evaluated'),
      fc.tuple(word, word).map((words) => words.join('.')),
    ),
    outcome: fc.oneof(fc.constantFrom('success', 'error', 'blocked'), word),
    tool: text,
    durationMs: maybe(fc.double({ min: 0, max: 1e12, noNaN: true })),
    error: text,
    agent: maybe(
      fc.record(
        {
          class: text,
          trust: text,
          vendor: text,
          confidence: maybe(fc.double({ min: 0, max: 1, noNaN: true })),
          userAgent: text,
          detectionVersion: fc.oneof(text, fc.integer()),
          signals: fc.jsonValue({ maxDepth: 2 }),
        },
        { requiredKeys: [] },
      ),
    ),
    policy: maybe(fc.record({ decision: text, ruleId: text, reason: text }, { requiredKeys: [] })),
    metadata: maybe(
      fc.record({ page: text, protocol: text, subject: text, extra: fc.jsonValue() }, { requiredKeys: [] }),
    ),
  },
  { requiredKeys: ['id', 'siteId', 'sessionId', 'occurredAt', 'type', 'outcome'] },
)

const paths = [
  'id',
  'siteId',
  'sessionId',
  'occurredAt',
  'type',
  'outcome',
  'tool',
  'durationMs',
  'error',
  'agent',
  'policy',
  'metadata',
  'agent.class',
  'agent.trust',
  'agent.vendor',
  'agent.confidence',
  'agent.userAgent',
  'agent.detectionVersion',
  'agent.signals',
  'policy.decision',
  'policy.ruleId',
  'policy.reason',
  'metadata.page',
  'metadata.protocol',
  'metadata.subject',
  'unknown',
]

/** Values at and around every limit and of every type. The long ones are below U+10000: see model.test.ts. */
const suspicious = fc.oneof(
  fc.constantFrom<unknown>(
    undefined,
    null,
    '',
    ' ',
    'A',
    'a',
    'a.b',
    'a..b',
    'Ä',
    'authz.evaluated',
    'blocked',
  ),
  fc.constantFrom<unknown>(0, -0, 1, -1, 1.0000001, -0.1, 1e308, true, false, {}, [], [1], { a: 1 }, [null]),
  fc.constantFrom(
    '2026-06-23T12:00:00Z',
    '2026-06-23',
    '2026-06-23T12:00:00',
    '2026-06-23T12:00:00.123+02:00',
  ),
  fc
    .constantFrom(32, 33, 64, 65, 200, 201, 2000, 2001)
    .chain((length) => fc.constantFrom('a', 'é', 'Z').map((char) => char.repeat(length))),
  fc.jsonValue({ maxDepth: 2 }),
)

/** A valid event with up to three fields replaced by any value. */
export const changedEvent = fc
  .tuple(validEvent, fc.array(fc.tuple(fc.constantFrom(...paths), suspicious), { maxLength: 3 }))
  .map(([event, changes]) => {
    const changed: { [member: string]: unknown } = structuredClone(event)
    for (const [path, value] of changes) setAt(changed, path.split('.'), value)
    return changed
  })

function setAt(target: { [member: string]: unknown }, path: string[], value: unknown): void {
  const [name = '', inner] = path
  if (inner === undefined) target[name] = value
  else target[name] = { ...(target[name] as object | null | undefined), [inner]: value }
}
