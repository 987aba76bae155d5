/** The response schema of GET /v1/metrics. */
import { t } from 'elysia'
import { integer, nullable, time } from '../../http/validate.ts'
import { limits } from '../../limits.ts'

const count = integer({ minimum: 0 })

export const metricsModel = t.Object({
  since: time('Inclusive, rounded down to the hour.'),
  until: nullable(time('Exclusive, rounded down to the hour.')),
  total: count,
  byType: t.Record(t.String(), count),
  byOutcome: t.Record(t.String(), count),
  byHour: t.Array(t.Object({ hour: time('The start of the hour.'), count }), {
    description: 'Ascending, without hours that have no events.',
  }),
  rows: t.Array(
    t.Object({
      orgId: t.String(),
      siteId: t.String(),
      bucketStart: time('The start of the hour.'),
      type: t.String(),
      outcome: t.String(),
      count,
    }),
    { description: `Ascending, at most ${limits.metricsRowsMax}.` },
  ),
  truncated: t.Optional(t.Literal(true, { description: 'There are more rows. The totals include them.' })),
})
