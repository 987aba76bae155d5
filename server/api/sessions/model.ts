/** The wire schemas of sessions: the events of one agent from its first to its last. */
import { t } from 'elysia'
import { integer, nullable, time } from '../../http/validate.ts'
import { eventModel } from '../../ingest/model.ts'
import { limits } from '../../limits.ts'

const counts = t.Record(t.String(), integer({ minimum: 0 }))

export const sessionModel = t.Object({
  id: t.String(),
  siteIds: t.Array(t.String()),
  firstSeenAt: time(),
  lastSeenAt: time(),
  events: integer({ minimum: 1 }),
  agent: t.Object(
    { class: nullable(t.String()), vendor: nullable(t.String()), trust: nullable(t.String()) },
    { description: 'The agent, with the highest trust it reached.' },
  ),
  byPillar: t.Record(t.String(), integer({ minimum: 0 }), {
    description: 'Events per first word of the type.',
  }),
  byOutcome: counts,
  truncated: t.Optional(
    t.Literal(true, {
      description: `The session has more events; only the newest ${limits.sessionEventsMax} were counted.`,
    }),
  ),
})

const nextCursor = nullable(t.String())

export const sessionPageModel = t.Object({ sessions: t.Array(sessionModel), nextCursor })
export const sessionStoryModel = t.Object({
  session: sessionModel,
  events: t.Array(eventModel, { description: 'Oldest first.' }),
  nextCursor,
})
