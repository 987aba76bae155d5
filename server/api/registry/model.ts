/** The request and response schemas of tools and site memory. */
import { t } from 'elysia'
import { integer, nullable, optional, time } from '../../http/field-models.ts'
import { limits } from '../../limits.ts'

const anyObject = t.Object({}, { additionalProperties: true })

const siteIdModel = t.String({ minLength: 1, maxLength: limits.idCharsMax })

/** A tool descriptor. Unknown fields are stored and returned as they are. */
export const toolModel = t.Object(
  {
    name: t.String({ minLength: 1, maxLength: limits.toolNameCharsMax, examples: ['checkout.pay'] }),
    title: optional(t.String({ maxLength: limits.toolTextCharsMax })),
    description: optional(t.String({ maxLength: limits.toolDescriptionCharsMax })),
    group: optional(t.String({ maxLength: limits.toolTextCharsMax })),
    page: optional(t.String({ maxLength: limits.pageCharsMax, description: 'The page of the tool.' })),
    inputSchema: optional(anyObject),
    outputSchema: optional(anyObject),
    tokens: optional(
      integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'Estimated by default.' }),
    ),
    enabled: optional(t.Boolean({ description: 'Default: true.' })),
    annotations: optional(anyObject),
  },
  { additionalProperties: true },
)

export const toolsBodyModel = t.Object(
  {
    siteId: siteIdModel,
    tools: t.Array(toolModel, { maxItems: limits.toolsPerPushMax }),
  },
  { additionalProperties: true },
)

export const toolsAnswerModel = t.Object({
  ok: t.Literal(true),
  tools: integer({ minimum: 0, description: 'Number of tools received.' }),
})

export const toolViewModel = t.Object({
  siteId: t.String(),
  name: t.String(),
  enabled: t.Boolean(),
  tokens: integer({ minimum: 0, description: 'As sent, or estimated from the descriptor.' }),
  tokensEstimated: t.Boolean(),
  version: integer({ minimum: 1 }),
  firstSeenAt: time('When the site first pushed this tool.'),
  changedAt: time('When the newest version was pushed.'),
  removedAt: nullable(time('When a push with mode=replace omitted it.')),
  tool: toolModel,
})

export const toolPageModel = t.Object({
  tools: t.Array(toolViewModel),
  nextCursor: nullable(t.String()),
})

/** One difference between a version and the previous one. */
const differenceModel = t.Object({
  path: t.String({ description: 'JSON Pointer into the descriptor.' }),
  change: t.Union([t.Literal('added'), t.Literal('removed'), t.Literal('changed')]),
  before: t.Optional(t.Unknown({ description: 'Missing when the field is new or the value too long.' })),
  after: t.Optional(
    t.Unknown({ description: 'Missing when the field was removed or the value is too long.' }),
  ),
})

export const toolHistoryModel = t.Object({
  tool: toolViewModel,
  versions: t.Array(
    t.Object({
      version: integer({ minimum: 1 }),
      at: time('When the version was pushed.'),
      change: t.Union([
        t.Literal('added'),
        t.Literal('changed'),
        t.Literal('removed'),
        t.Literal('restored'),
      ]),
      differences: t.Array(differenceModel),
      tool: toolModel,
    }),
    { description: `Newest first, at most ${limits.versionsShownMax}.` },
  ),
})

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
