/** The record of an event (contract §17) in the reference: its schema and an example. */
import { t } from 'elysia'
import { nullable, time } from '../http/field-models.ts'
import { exampleTime } from './operation-model.ts'

const text = (description: string) => nullable(t.String({ description }))

export const recordModel = t.Object(
  {
    door: text(
      'How the event came in: events, access-log, syslog, otlp, import or demo. null: stored before it was recorded.',
    ),
    key: text('The id of the ingest key that sent it. null for files and the command line.'),
    receivedAt: time('When it arrived.'),
    verdict: text('The verdict on the claim of the agent, of the appliance or of the sender.'),
    judgedBy: nullable(
      t.Union([t.Literal('appliance'), t.Literal('sender'), t.Literal('unknown')], {
        description:
          'appliance: by its own evidence. sender: only agent.verdict of the event says so. unknown: stored before ' +
          'the appliance recorded judges. null without a verdict.',
      }),
    ),
    observedBy: text(
      'Who saw the address or signature that was judged: appliance, or the id of the ingest key that reported it.',
    ),
    evidence: nullable(
      t.Object(
        {
          method: t.String({ description: 'signature, address or dns.' }),
          list: t.Optional(t.String({ description: 'The address of the list that the operator publishes.' })),
          listDate: t.Optional(t.String()),
          listDigest: t.Optional(t.String({ description: 'SHA-256 of its networks as they were judged.' })),
          networks: t.Optional(
            t.Number({
              description: "How many the operator's lists have, where the address is in none of them.",
            }),
          ),
          keyId: t.Optional(t.String({ description: 'Of a signature.' })),
          reason: t.Optional(t.String({ description: 'Of a verdict that proves nothing.' })),
        },
        { description: "What the appliance's verdict rests on.", additionalProperties: true },
      ),
    ),
    network: text('The network of a contradicted request, /24 or /48, while it is stored.'),
  },
  {
    description:
      'What the appliance alone knows of an event. The text of the event is returned as it was sent.',
  },
)

export const exampleRecord = {
  door: 'events',
  key: 'key_1',
  receivedAt: exampleTime,
  verdict: null,
  judgedBy: null,
  observedBy: null,
  evidence: null,
  network: null,
}
