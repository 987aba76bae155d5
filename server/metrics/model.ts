/** The wire schemas of GET /v1/metrics. */
import { t } from 'elysia'
import { limits } from '../limits.ts'

const time = (description: string) => t.String({ description, examples: ['2026-06-23T12:00:00.000Z'] })
const count = t.Integer({ minimum: 0 })

export const metricsModel = t.Object({
  since: time('Inclusive, cut down to the hour.'),
  until: t.Union([time('Exclusive, cut down to the hour.'), t.Null()]),
  total: count,
  byType: t.Record(t.String(), count),
  byOutcome: t.Record(t.String(), count),
  byHour: t.Array(t.Object({ hour: time('The beginning of the hour.'), count }), {
    description: 'Ascending, hours without events left out.',
  }),
  rows: t.Array(
    t.Object({
      orgId: t.String(),
      siteId: t.String(),
      bucketStart: time('The beginning of the hour.'),
      type: t.String(),
      outcome: t.String(),
      count,
    }),
    { description: `Ascending, at most ${limits.metricsRowsMax}.` },
  ),
  truncated: t.Optional(t.Literal(true, { description: 'There are more rows; the sums count them too.' })),
})
