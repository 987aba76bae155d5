/** The request and response schemas of site memory. */
import { t } from 'elysia'
import { integer, nullable, time } from '../../http/validate.ts'
import { limits } from '../../limits.ts'
import { differenceModel, siteIdModel } from './model.ts'

const snapshotModel = t.Object(
  {},
  {
    additionalProperties: true,
    description:
      'The site memory. siteMap.pages, siteMap.navigation, workflows, policies, uiGuidance and pageContexts count for ' +
      'the score.',
  },
)

export const memoryBodyModel = t.Object(
  {
    siteId: siteIdModel,
    snapshot: snapshotModel,
    score: t.Optional(
      t.Union([t.Number({ minimum: 0, maximum: 100, description: 'Computed by default.' }), t.Null()]),
    ),
  },
  { additionalProperties: true },
)

export const memoryAnswerModel = t.Object({ ok: t.Literal(true), siteId: t.String() })

const versionMembers = {
  version: integer({ minimum: 1 }),
  at: time(),
  score: t.Number({ minimum: 0, maximum: 100 }),
  scoreComputed: t.Boolean({ description: 'True when the server computed the score.' }),
  bytes: integer({ minimum: 0, description: 'Size of the snapshot as JSON.' }),
}

const memoryViewModel = t.Object({
  siteId: t.String(),
  firstSeenAt: time(),
  ...versionMembers,
  snapshot: snapshotModel,
})

export const memoryPageModel = t.Object({
  memory: t.Array(memoryViewModel),
  nextCursor: nullable(t.String()),
})

export const memoryHistoryModel = t.Object({
  memory: memoryViewModel,
  versions: t.Array(t.Object(versionMembers), {
    description: `Newest first, at most ${limits.memoryVersionsMax}.`,
  }),
})

export const memoryVersionModel = t.Object({
  memory: memoryViewModel,
  differences: t.Array(differenceModel, { description: 'Differences from the previous version.' }),
})
