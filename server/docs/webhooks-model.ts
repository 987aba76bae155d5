/** The schemas of webhook requests and responses for the reference. */
import { t } from 'elysia'
import { integer, nullable, time as wireTime } from '../http/field-models.ts'
import { limits } from '../limits.ts'

const count = integer({ minimum: 0 })
const time = wireTime()
const url = t.String({ examples: ['https://hooks.example.com/sightglass'] })
const filterList = (charsMax: number) =>
  t.Optional(nullable(t.Array(t.String({ maxLength: charsMax + 2 }), { maxItems: 100 })))
const label = t.Optional(nullable(t.String({ maxLength: limits.labelCharsMax })))
const filters = {
  types: filterList(limits.typeCharsMax),
  outcomes: filterList(limits.outcomeCharsMax),
  classes: filterList(limits.classCharsMax),
  sites: filterList(limits.idCharsMax),
}

export const status = t.Union([t.Literal('pending'), t.Literal('delivered'), t.Literal('dead_letter')])

export const testBody = t.Object({
  url,
  payload: t.Optional(t.Object({}, { additionalProperties: true, default: {} })),
})
export const scheduled = t.Object({ ok: t.Literal(true), deliveryId: t.String() })
export const okModel = t.Object({ ok: t.Literal(true) })
export const empty = t.Object({})

const running = integer({ minimum: 0, description: 'Attempts that are running.' })
const slots = integer({ minimum: 1, description: 'The most that run at once.' })

/** One shape for each reason of `WaitingFor` in `server/text/waiting.ts`. */
const waitingFor = t.Union(
  [
    t.Object({ reason: t.Literal('response'), until: time }),
    t.Object({ reason: t.Literal('retry'), until: time }),
    t.Object({ reason: t.Literal('paused') }),
    t.Object({ reason: t.Literal('lane'), running, limit: slots }),
    t.Object({ reason: t.Literal('slot'), running, limit: slots }),
    t.Object({ reason: t.Literal('lease'), node: nullable(t.String()), until: time }),
    t.Object({ reason: t.Literal('replay') }),
    t.Object({ reason: t.Literal('dispatch') }),
    t.Null(),
  ],
  {
    description:
      'Why a pending delivery waits; null unless pending. response: an attempt is running and has ended by then. ' +
      'retry: the time of the next attempt. paused: its endpoint is paused. lane: other deliveries to the same receiver ' +
      'are running. slot: the slots of the server are taken or reserved for other receivers. lease: the node of this name ' +
      'delivers it; without a name, the outcome of its last attempt is not recorded, and it is sent again after that time. ' +
      'replay: it was replayed and the next run sends it. dispatch: it is due and the next run sends it.',
  },
)

export const delivery = t.Object({
  id: t.String(),
  orgId: t.String(),
  endpointId: nullable(t.String()),
  url: t.String(),
  payload: t.Object({}, { additionalProperties: true }),
  status,
  attempts: count,
  nextAttemptAt: nullable(time),
  waitingFor,
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
      maxItems: limits.webhookRetriesMax,
      description:
        'Waits before each retry, in seconds or as "5m"; 24 hours in total. null uses the waits of the server.',
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
    t.Array(integer({ minimum: 1 }), { description: 'In seconds. null uses the waits of the server.' }),
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
const secret = t.String({
  description: 'Signs the messages of the endpoint. Shown once.',
  examples: ['whsec_…'],
})
const warnings = t.Array(
  t.Object({ path: t.String(), code: t.Literal('unknown_type'), message: t.String() }),
  {
    description: 'Accepted, but possibly misspelt: types that no event has yet.',
  },
)

export const withSecret = t.Object({ endpoint, secret })
export const created = t.Object({ endpoint, secret, warnings })
export const changed = t.Object({ endpoint, warnings })
const position = (description: string) =>
  t.Union([count, time], { description: `A position, or an arrival time. ${description}` })

export const replayBody = t.Object({
  from: position('Replays events after this position, or events that arrived at this time or later.'),
  until: t.Optional(
    nullable(
      position(
        'Ends at this position, inclusive, or before this time. Default: the current position of the endpoint.',
      ),
    ),
  ),
})
