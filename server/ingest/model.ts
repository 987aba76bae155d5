/** The schemas of ingest, for OpenAPI. `check-event.ts` implements them by hand for speed; a test compares the two. */
import { t } from 'elysia'
import { textFields } from '../../db/contract/event-fields.ts'
import { integer } from '../http/field-models.ts'
import { limits } from '../limits.ts'

const text = (maxLength: number, description?: string) =>
  t.Optional(t.Union([t.String({ maxLength }), t.Null()], description === undefined ? {} : { description }))

/** Any text except "." and "..", which no address can hold. */
const idPattern = '^(?!\\.{1,2}$)'

const requiredText = (maxLength: number, description: string) =>
  t.String({ minLength: 1, maxLength, pattern: idPattern, description })

/** The fields of one object of an event. */
const fieldsIn = (object: string) =>
  Object.fromEntries(
    textFields
      .filter(({ path }) => path[0] === object)
      .map(({ name, charsMax, about: description }) => [name, text(charsMax, description)]),
  )

const open = { additionalProperties: true }

const agentModel = t.Object(
  {
    ...fieldsIn('agent'),
    confidence: t.Optional(t.Union([t.Number({ minimum: 0, maximum: 1 }), t.Null()])),
    userAgent: text(limits.userAgentCharsMax),
    detectionVersion: t.Optional(
      t.Union([t.String({ maxLength: limits.detectionVersionCharsMax }), t.Number(), t.Null()]),
    ),
    signals: t.Optional(t.Unknown({ description: 'The signals of the detection, in any form.' })),
    evidence: t.Optional(
      t.Unknown({
        description:
          'What the verdict is based on, in any form. Sightglass writes an object with method (signature, address or dns), ' +
          'list, listDate, networks, keyId and reason (user-triggered or old-list).',
      }),
    ),
  },
  open,
)

const policyModel = t.Object(
  {
    ...fieldsIn('policy'),
  },
  open,
)

const metadataModel = t.Object(
  {
    ...fieldsIn('metadata'),
  },
  open,
)

/** One event. Unknown fields are stored and returned as they are. */
export const eventModel = t.Object(
  {
    id: requiredText(
      limits.idCharsMax,
      'Idempotency key. The first event with an id is stored; later ones count as deduped.',
    ),
    siteId: requiredText(limits.idCharsMax, 'The site id.'),
    sessionId: requiredText(limits.idCharsMax, 'The session id.'),
    occurredAt: t.String({
      pattern: /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:[Zz]|[+-]\d{2}:\d{2})$/.source,
      description: 'RFC 3339 with Z or an offset, years 1970 to 2200.',
      examples: ['2026-06-23T12:00:00Z'],
    }),
    type: t.String({
      maxLength: limits.typeCharsMax,
      pattern: /^[a-z][a-z0-9_-]*(?:\.[a-z][a-z0-9_-]*)*$/.source,
      description: 'A dotted event type. Unknown types are accepted.',
      examples: ['agent.detected', 'tool.executed', 'authz.evaluated'],
    }),
    outcome: t.String({
      maxLength: limits.outcomeCharsMax,
      pattern: /^[a-z][a-z0-9_-]*$/.source,
      description: 'Known values: success, error, blocked. Others are accepted.',
      examples: ['success'],
    }),
    tool: text(limits.toolCharsMax),
    durationMs: t.Optional(t.Union([t.Number({ minimum: 0 }), t.Null()])),
    error: text(limits.errorCharsMax),
    agent: t.Optional(t.Union([agentModel, t.Null()])),
    policy: t.Optional(t.Union([policyModel, t.Null()])),
    metadata: t.Optional(t.Union([metadataModel, t.Null()])),
  },
  open,
)

const observedModel = t.Object({
  address: t.Optional(
    t.String({
      maxLength: limits.observedAddressCharsMax,
      description: 'The address of the client. It is judged and not stored. Optional beside a signature.',
    }),
  ),
  signature: t.Optional(
    t.Object(
      {
        base: t.String({
          maxLength: limits.observedBaseBytesMax,
          description: 'The signature base of RFC 9421: the text that was signed.',
        }),
        signature: t.String({ description: 'The signature, base64.' }),
        keyId: t.String({ description: 'The keyid of the signature.' }),
      },
      { description: 'The Web Bot Auth signature of the request.' },
    ),
  ),
})

export const eventsBodyModel = t.Object(
  {
    events: t.Array(eventModel, { minItems: 1, maxItems: limits.eventsPerRequestMax }),
    observed: t.Optional(
      t.Record(t.String(), observedModel, {
        description:
          'What the sender saw of the requests by agents, by event id. The appliance judges the claims by it. JSON bodies ' +
          'only. An entry that cannot be used is named in warnings, and its event is stored without a verdict.',
      }),
    ),
  },
  open,
)

const issueModel = t.Object({
  path: t.String({ description: "The path of the field in the event; '' is the event itself." }),
  message: t.String(),
  code: t.String({
    description: 'required, wrong_type, wrong_format, too_long, too_deep, too_large, too_many or wrong_site.',
  }),
  index: t.Optional(
    integer({ minimum: 0, description: 'The position of the event in the request, from 0.' }),
  ),
  id: t.Optional(t.String({ description: 'The event id, if it has a valid one.' })),
})

/** The 202 response. `rejected` and `errors` are present when some events were rejected. */
export const ingestAnswerModel = t.Object({
  ok: t.Boolean({ description: 'True when no event was rejected.' }),
  accepted: integer({ minimum: 0 }),
  deduped: integer({ minimum: 0, description: 'Events whose id was already stored.' }),
  rejected: t.Optional(integer({ minimum: 1 })),
  errors: t.Optional(t.Array(issueModel)),
  warnings: t.Optional(
    t.Array(issueModel, {
      description: 'Entries of observed that cannot be used; at most 20. Their events are stored.',
    }),
  ),
})
