/** The wire schemas of tool registries: what is pushed, and what reads answer. */
import { t } from 'elysia'
import { integer, nullable, optional, time } from '../../http/validate.ts'
import { limits } from '../../limits.ts'

const anyObject = t.Object({}, { additionalProperties: true })

export const siteIdModel = t.String({ minLength: 1, maxLength: limits.idCharsMax })

/** A tool as sent. Members that are not named here are kept and given back as they came. */
export const toolModel = t.Object(
  {
    name: t.String({ minLength: 1, maxLength: limits.toolNameCharsMax, examples: ['checkout.pay'] }),
    title: optional(t.String({ maxLength: limits.toolTextCharsMax })),
    description: optional(t.String({ maxLength: limits.toolDescriptionCharsMax })),
    group: optional(t.String({ maxLength: limits.toolTextCharsMax })),
    page: optional(
      t.String({ maxLength: limits.pageCharsMax, description: 'The page the tool belongs to.' }),
    ),
    inputSchema: optional(anyObject),
    outputSchema: optional(anyObject),
    tokens: optional(
      integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'Left out: estimated.' }),
    ),
    enabled: optional(t.Boolean({ description: 'Left out: enabled.' })),
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
  tools: integer({ minimum: 0, description: 'How many tools were received.' }),
})

export const toolViewModel = t.Object({
  siteId: t.String(),
  name: t.String(),
  enabled: t.Boolean(),
  tokens: integer({ minimum: 0, description: 'As sent, or estimated from the descriptor.' }),
  tokensEstimated: t.Boolean(),
  version: integer({ minimum: 1 }),
  firstSeenAt: time('When the site first pushed this tool.'),
  changedAt: time('When the newest version came.'),
  removedAt: nullable(time('When a push with mode=replace no longer named it.')),
  tool: toolModel,
})

export const toolPageModel = t.Object({
  tools: t.Array(toolViewModel),
  nextCursor: nullable(t.String()),
})

/** One thing that differs between a version and the one before. */
export const differenceModel = t.Object({
  path: t.String({ description: 'A JSON Pointer into the descriptor.' }),
  change: t.Union([t.Literal('added'), t.Literal('removed'), t.Literal('changed')]),
  before: t.Optional(t.Unknown({ description: 'Left out when it is new, or too long to show.' })),
  after: t.Optional(t.Unknown({ description: 'Left out when it is gone, or too long to show.' })),
})

export const toolHistoryModel = t.Object({
  tool: toolViewModel,
  versions: t.Array(
    t.Object({
      version: integer({ minimum: 1 }),
      at: time('When it came.'),
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
