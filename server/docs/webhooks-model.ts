/** The wire shapes of webhooks, for the reference. */
import { t } from 'elysia'
import { integer, nullable, time as wireTime } from '../http/wire-types.ts'
import { limits } from '../limits.ts'

const count = integer({ minimum: 0 })
const time = wireTime()
const url = t.String({ examples: ['https://hooks.example.com/sightglass'] })
const words = (charsMax: number) =>
  t.Optional(nullable(t.Array(t.String({ maxLength: charsMax + 2 }), { maxItems: 100 })))
const label = t.Optional(nullable(t.String({ maxLength: limits.labelCharsMax })))
const filters = {
  types: words(limits.typeCharsMax),
  outcomes: words(limits.outcomeCharsMax),
  classes: words(limits.classCharsMax),
  sites: words(limits.idCharsMax),
}

export const status = t.Union([t.Literal('pending'), t.Literal('delivered'), t.Literal('dead_letter')])

export const testBody = t.Object({
  url,
  payload: t.Optional(t.Object({}, { additionalProperties: true, default: {} })),
})
export const scheduled = t.Object({ ok: t.Literal(true), deliveryId: t.String() })
export const done = t.Object({ ok: t.Literal(true) })
export const empty = t.Object({})

export const delivery = t.Object({
  id: t.String(),
  orgId: t.String(),
  endpointId: nullable(t.String()),
  url: t.String(),
  payload: t.Object({}, { additionalProperties: true }),
  status,
  attempts: count,
  nextAttemptAt: nullable(time),
  lastError: nullable(t.String()),
  lastStatus: nullable(integer()),
  scheduledAt: time,
  deliveredAt: nullable(time),
})
export const deliveryWithAttempts = t.Composite([
  delivery,
  t.Object({
    attemptLog: t.Array(
      t.Object({
        at: time,
        status: nullable(integer()),
        durationMs: t.Number({ minimum: 0 }),
        responseExcerpt: t.String(),
        error: nullable(t.String()),
      }),
    ),
  }),
])

const batchSize = t.Optional(nullable(integer({ minimum: 1, maximum: limits.webhookBatchEventsMax })))

const retryWaits = t.Optional(
  nullable(
    t.Array(t.Union([integer({ minimum: 1 }), t.String()]), {
      maxItems: limits.webhookWaitsMax,
      description:
        'Waits before the retries: seconds, or texts such as "5m"; 24 hours in all. null: those of the server.',
    }),
  ),
)

export const endpointBody = t.Object({ url, label, batchSize, retryWaits, ...filters })
export const endpointChange = t.Object({ url: t.Optional(url), label, batchSize, retryWaits, ...filters })
export const endpoint = t.Object({
  id: t.String(),
  orgId: t.String(),
  url: t.String(),
  label: t.String(),
  types: t.Array(t.String()),
  outcomes: t.Array(t.String()),
  classes: t.Array(t.String()),
  sites: t.Array(t.String()),
  batchSize: integer({ minimum: 1 }),
  retryWaits: nullable(
    t.Array(integer({ minimum: 1 }), { description: 'In seconds. null: those of the server.' }),
  ),
  status: t.Union([t.Literal('active'), t.Literal('paused')]),
  pausedReason: nullable(t.String()),
  pausedAt: nullable(time),
  position: count,
  sequence: count,
  missed: count,
  replayUntil: nullable(count),
  resumePosition: nullable(count),
  pending: count,
  delivered: count,
  deadLetters: count,
  createdAt: time,
  lastSuccessAt: nullable(time),
  failingSince: nullable(time),
  nextProbeAt: nullable(time),
  oldSecretUntil: nullable(time),
})
const secret = t.String({ description: 'Signs its messages. Shown once.', examples: ['whsec_…'] })
const warnings = t.Array(
  t.Object({ path: t.String(), code: t.Literal('unknown_type'), message: t.String() }),
  {
    description: 'What was accepted but may be a typing error: types that no event has yet.',
  },
)

export const withSecret = t.Object({ endpoint, secret })
export const created = t.Object({ endpoint, secret, warnings })
export const changed = t.Object({ endpoint, warnings })
const place = (description: string) =>
  t.Union([count, time], { description: `A position, or a time of arrival. ${description}` })

export const replayBody = t.Object({
  from: place('What lies behind the position, or arrived at the time or later, is delivered again.'),
  until: t.Optional(
    nullable(
      place('Up to and including the position, or before the time. Left out: up to where the endpoint is.'),
    ),
  ),
})

const ruleNumbers = {
  threshold: t.Optional(t.Unknown({ description: 'Of blocked_share and tool_error_rate: 0 to 1.' })),
  minutes: t.Optional(integer({ minimum: 1, description: 'Of silence.' })),
  eventsMin: t.Optional(t.Unknown({ description: 'Of the same: how many events it takes, from 1.' })),
}

export const ruleBody = t.Object({
  kind: t.Union(
    ['new_vendor', 'blocked_share', 'tool_error_rate', 'silence', 'key_leaked'].map((kind) =>
      t.Literal(kind),
    ),
  ),
  endpointId: t.String(),
  ...ruleNumbers,
})
export const ruleChange = t.Object(ruleNumbers)
export const incidentStatus = t.Union([t.Literal('open'), t.Literal('resolved')])
export const rule = t.Object({
  id: t.String(),
  endpointId: t.String(),
  kind: t.String(),
  threshold: nullable(t.Number()),
  minutes: nullable(integer()),
  eventsMin: nullable(integer()),
  createdAt: time,
})
export const incident = t.Object({
  id: t.String(),
  ruleId: t.String(),
  subject: t.String(),
  status: t.Union([t.Literal('open'), t.Literal('acknowledged'), t.Literal('resolved')]),
  severity: t.Union([t.Literal('critical'), t.Literal('warning'), t.Literal('info')]),
  message: t.String({ description: 'What it is about, for people.' }),
  link: t.String({ description: 'The page of the dashboard that shows it, with range and filter.' }),
  openedAt: time,
  acknowledgedAt: nullable(time),
  acknowledgedBy: nullable(t.String({ description: 'As in the audit log: user:… or key:…' })),
  resolvedAt: nullable(time),
  data: t.Object({}, { additionalProperties: true }),
})
