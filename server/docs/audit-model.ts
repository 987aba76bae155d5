/** The reference of the audit export. */
import { t } from 'elysia'
import { integer } from '../http/wire-types.ts'
import { exampleTime } from './examples.ts'
import type { Operation } from './operation.ts'

const texts = t.Optional(t.Union([t.String(), t.Array(t.String()), t.Null()]))
const time = t.Optional(t.Union([t.String({ examples: ['2026-06-23T12:00:00Z'] }), t.Null()]))

const bodyModel = t.Object(
  {
    format: t.Optional(t.Union([t.Literal('json'), t.Literal('csv')])),
    since: time,
    until: time,
    actor: texts,
    action: texts,
    target: texts,
    q: texts,
    raw: t.Optional(t.Boolean({ description: 'With csv: leaves formulas as they are.' })),
  },
  { additionalProperties: false },
)

export const auditEntryModel = t.Object({
  id: t.String(),
  orgId: t.String(),
  actor: t.String(),
  action: t.String(),
  target: t.String(),
  metadata: t.Object({}, { additionalProperties: true }),
  occurredAt: t.String(),
})

const headModel = t.Object({
  orgId: t.String(),
  count: integer({ minimum: 0 }),
  hash: t.String(),
  at: t.String(),
  key: t.String(),
  signature: t.String(),
})

export const auditOperations: Operation[] = [
  {
    id: 'exportAudit',
    method: 'post',
    path: '/v1/audit/export',
    tag: 'Audit',
    summary: 'Export the audit trail',
    about: 'Newest first, this export itself among them. An empty body means everything as JSON.',
    key: 'secret',
    scope: 'audit:read',
    body: { schema: bodyModel, example: { format: 'json', since: '2026-06-01' }, optional: true },
    answers: {
      200: [
        {
          description: 'The entries, and the signed head of their chain.',
          schema: t.Object({
            entries: t.Array(auditEntryModel),
            count: integer({ minimum: 0 }),
            head: headModel,
          }),
          example: {
            entries: [
              {
                id: 'aud_example',
                orgId: 'org_example',
                actor: 'key:key_example',
                action: 'audit.exported',
                target: 'org_example',
                metadata: { format: 'json' },
                occurredAt: exampleTime,
              },
            ],
            count: 1,
            head: {
              orgId: 'org_example',
              count: 1,
              hash: '0'.repeat(64),
              at: exampleTime,
              key: 'base64url',
              signature: 'base64url',
            },
          },
        },
        { description: 'With format csv: an attachment with the same columns.', type: 'text/csv' },
      ],
    },
  },
]
