/** The wire schemas of tool registries: what is pushed, and what reads answer. */
import { t } from 'elysia'
import { limits } from '../limits.ts'

const nullable = <S extends Parameters<typeof t.Union>[0][number]>(schema: S) =>
  t.Optional(t.Union([schema, t.Null()]))
const anyObject = t.Object({}, { additionalProperties: true })

export const siteIdModel = t.String({ minLength: 1, maxLength: limits.idCharsMax })

/** A tool as sent. Members that are not named here are kept and given back as they came. */
export const toolModel = t.Object(
  {
    name: t.String({ minLength: 1, maxLength: limits.toolNameCharsMax, examples: ['checkout.pay'] }),
    title: nullable(t.String({ maxLength: limits.toolTextCharsMax })),
    description: nullable(t.String({ maxLength: limits.toolDescriptionCharsMax })),
    group: nullable(t.String({ maxLength: limits.toolTextCharsMax })),
    page: nullable(
      t.String({ maxLength: limits.pageCharsMax, description: 'The page the tool belongs to.' }),
    ),
    inputSchema: nullable(anyObject),
    outputSchema: nullable(anyObject),
    tokens: nullable(
      t.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'Left out: estimated.' }),
    ),
    enabled: nullable(t.Boolean({ description: 'Left out: enabled.' })),
    annotations: nullable(anyObject),
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
  tools: t.Integer({ minimum: 0, description: 'How many tools were received.' }),
})

const time = (description: string) => t.String({ description, examples: ['2026-06-23T12:00:00.000Z'] })

export const toolViewModel = t.Object({
  siteId: t.String(),
  name: t.String(),
  enabled: t.Boolean(),
  tokens: t.Integer({ minimum: 0, description: 'As sent, or estimated from the descriptor.' }),
  tokensEstimated: t.Boolean(),
  version: t.Integer({ minimum: 1 }),
  firstSeenAt: time('When the site first pushed this tool.'),
  changedAt: time('When the newest version came.'),
  removedAt: t.Union([time('When a push with mode=replace no longer named it.'), t.Null()]),
  tool: toolModel,
})

export const toolPageModel = t.Object({
  tools: t.Array(toolViewModel),
  nextCursor: t.Union([t.String(), t.Null()]),
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
      version: t.Integer({ minimum: 1 }),
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
