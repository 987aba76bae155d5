/** `sightglass webhook`: the signing secret of an organization, test deliveries, and the delivery log. */
import type { Json } from '../../../db/contract/store.ts'
import type { Actor } from '../../audit/entry.ts'
import { isoTime } from '../../clock.ts'
import { UsageError } from '../../errors.ts'
import { flagOf, numberOf, textOf, textOrNull, type Params } from '../../runtime/work.ts'
import {
  deliveryStatuses,
  findDelivery,
  replayDead,
  replayDelivery,
  scheduleDelivery,
  testEndpoint,
} from '../../webhooks/delivery/deliveries.ts'
import { orgSecret, rotateOrgSecret, type EndpointServices } from '../../webhooks/endpoints/endpoints.ts'
import { replayEndpoint } from '../../webhooks/endpoints/replay-range.ts'
import { attemptView, deliveryText } from '../../webhooks/view.ts'
import { waitingSentence, type WaitingFor } from '../../text/waiting.ts'
import type { Noun } from '../command.ts'
import { dataCommand } from '../data-command.ts'
import { choice, text, toggle, wholeNumber } from '../option.ts'
import { orgOption, targetOptions } from '../options.ts'
import { cell, minute, table } from '../print.ts'
import { confirmOption, confirmRotation, endpointIdOf, inOrg, wordOf } from './webhook-endpoint.ts'

export const webhook: Noun = {
  group: 'Webhooks',
  commands: [
    dataCommand({
      name: 'webhook secret',
      summary: 'print or rotate the secret that signs deliveries to plain URLs',
      about: ['After --rotate both secrets sign deliveries for 24 hours, so that receivers can change over.'],
      examples: ['sightglass webhook secret --org default --json'],
      options: {
        ...orgOption,
        rotate: toggle('replace the secret; the old one signs too for 24 hours'),
        ...confirmOption,
      },
      access: 'create',
      params({ values: { org, rotate, yes } }) {
        if (rotate) confirmRotation(yes, 'the signing secret of the organization')
        return { org, rotate }
      },
      work: inOrg(async (services, actor, params) => {
        const read = flagOf(params, 'rotate') ? rotateOrgSecret : orgSecret
        const { secret, previousUntilMs } = await read(services, actor)
        return { secret, oldSecretUntil: previousUntilMs === null ? null : isoTime(previousUntilMs) }
      }),
      print: ({ secret, oldSecretUntil }) =>
        oldSecretUntil === null
          ? cell(secret)
          : `${cell(secret)}\n\nThe previous secret signs too until ${minute(oldSecretUntil)} UTC.`,
    }),
    dataCommand({
      name: 'webhook test',
      summary: 'send a payload to a URL, or a sample batch to an endpoint',
      usage: 'URL [--payload JSON] [--org SLUG|ID] | webhook test ENDPOINT_ID [--org SLUG|ID]',
      argumentsMax: 1,
      about: [
        'A payload is signed with the secret of the organization. An endpoint receives a trace.batch with one sample event and "test": true, signed with its own secret; its sequence does not change.',
      ],
      examples: [
        'sightglass webhook test ep_3q2uVbkz0c5mYw1n8sJx4A',
        'sightglass webhook test https://hooks.example.com/in --payload \'{"hello":"world"}\'',
      ],
      options: {
        ...orgOption,
        payload: { ...text('JSON', 'JSON object to send'), default: '{}' },
        ...targetOptions,
      },
      access: 'create',
      params(invocation) {
        const word = wordOf(invocation, 'a URL or the id of an endpoint', 'sightglass help webhook test')
        const { org, payload, 'webhook-allow': allow, 'sink-dir': sinkDir } = invocation.values
        if (word.startsWith('ep_')) return { org, endpointId: word, allow: [], sinkDir: null }
        return { org, url: word, payload, allow, sinkDir }
      },
      work: inOrg(async (services, actor, params) => {
        const endpointId = textOrNull(params, 'endpointId')
        if (endpointId !== null)
          return { ok: true, deliveryId: await testEndpoint(services, actor, endpointId) }
        const request = { url: textOf(params, 'url'), payload: readPayload(textOf(params, 'payload')) }
        return { ok: true, deliveryId: await scheduleDelivery(services, actor, request) }
      }),
      print: ({ deliveryId }) => `Scheduled ${cell(deliveryId)}. A running server sends it within 1 s.`,
    }),
    dataCommand({
      name: 'webhook list',
      summary: 'list deliveries, newest first',
      examples: ['sightglass webhook list --status dead_letter'],
      options: {
        ...orgOption,
        status: choice(['pending', 'delivered', 'dead_letter'], 'only deliveries with this status'),
        limit: {
          read: wholeNumber(1, 1_000),
          value: 'N',
          default: '50',
          help: 'maximum number of deliveries',
        },
      },
      access: 'read',
      params: ({ values: { org, status, limit } }) => ({ org, status, limit }),
      work: inOrg(list),
      print: ({ deliveries }) =>
        table(
          deliveries,
          'No deliveries.',
          ['ID', 'STATUS', 'ATTEMPTS', 'SCHEDULED', 'WAITING', 'URL', 'LAST ERROR'],
          ({ id, status, attempts, scheduledAt, waitingFor, url, lastError }) => [
            cell(id),
            cell(status),
            cell(attempts),
            minute(scheduledAt),
            waitCell(waitingFor),
            cell(url),
            cell(lastError),
          ],
        ),
    }),
    dataCommand({
      name: 'webhook show',
      summary: 'show a delivery with its payload and every attempt',
      arguments: 'DELIVERY_ID',
      examples: ['sightglass webhook show wh_3q2uVbkz0c5mYw1n8sJx4A'],
      options: orgOption,
      access: 'read',
      params: (invocation) => ({
        org: invocation.values.org,
        id: wordOf(invocation, 'the id of a delivery', 'sightglass webhook list'),
      }),
      work: inOrg(async (services, { orgId }, params) => {
        const { delivery, attempts } = await findDelivery(services.store, orgId, textOf(params, 'id'))
        return JSON.parse(deliveryText(services, delivery, { attemptLog: attempts.map(attemptView) })) as Json
      }),
      print: (answer) => JSON.stringify(answer, null, 2),
    }),
    dataCommand({
      name: 'webhook replay',
      summary: 'send a delivery, all dead letters, or a range of events again',
      usage:
        'DELIVERY_ID | webhook replay --dead | ' +
        'webhook replay ENDPOINT_ID --from POSITION|TIME [--until POSITION|TIME]',
      argumentsMax: 1,
      about: [
        'A delivery keeps its record and message id; its attempts count from 0 again, and the log of attempts stays.',
        'A range becomes new batches with new sequence numbers, sent before newer events. It starts after the position --from and ends with the position --until, or covers arrivals from one time up to, but not including, the other.',
      ],
      examples: [
        'sightglass webhook replay wh_3q2uVbkz0c5mYw1n8sJx4A',
        'sightglass webhook replay --dead',
        'sightglass webhook replay ep_3q2uVbkz0c5mYw1n8sJx4A --from 2026-06-23T12:00:00Z --until 2026-06-23T13:00:00Z',
      ],
      options: {
        ...orgOption,
        dead: toggle('all dead letters of the organization'),
        from: {
          ...text('POSITION|TIME', 'start of the range: a position of the endpoint, or a time of arrival'),
          flagOnly: true,
        },
        until: {
          ...text('POSITION|TIME', 'end of the range, by default the position of the endpoint'),
          flagOnly: true,
        },
      },
      access: 'write',
      params({ values: { org, dead, from, until }, words }) {
        const id = words[0] ?? null
        if ((from !== null || until !== null) && (id === null || from === null))
          throw new UsageError('a range needs the id of an endpoint and --from')
        if (from === null && dead === (id !== null))
          throw new UsageError(
            'give the id of a delivery, or --dead for all dead letters',
            'sightglass webhook list',
          )
        return { org, dead, from, until, id }
      },
      work: inOrg(replay),
      print: (answer) =>
        'endpoint' in answer
          ? `${endpointIdOf(answer)} receives the range again. A running server starts within 1 s.`
          : `Scheduled ${cell(answer['replayed'])} again. A running server sends them within 1 s.`,
    }),
  ],
}

/** A running server may be of another release, whose answers have no reason or another one. */
function waitCell(value: Json | undefined): string {
  if (value === null || value === undefined) return ''
  return waitingSentence(value as unknown as WaitingFor, (iso) => `${minute(iso)} UTC`)
}

function readPayload(payload: string): string {
  try {
    const value: unknown = JSON.parse(payload)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return JSON.stringify(value)
  } catch {
    // The parser's message would quote the payload.
  }
  throw new UsageError('--payload must be a JSON object, such as {"hello":"world"}')
}

const listBytesMax = 16 * 1024 * 1024

async function list(services: EndpointServices, { orgId }: Actor, params: Params): Promise<Json> {
  const statusText = textOrNull(params, 'status')
  const { deliveries } = await services.store.webhooks.list({
    orgId,
    status: deliveryStatuses.find((status) => status === statusText) ?? null,
    endpointId: null,
    limit: numberOf(params, 'limit'),
    bytesMax: listBytesMax,
    beforeSeq: null,
  })
  return { deliveries: deliveries.map((delivery) => JSON.parse(deliveryText(services, delivery)) as Json) }
}

async function replay(services: EndpointServices, actor: Actor, params: Params): Promise<Json> {
  const from = textOrNull(params, 'from')
  const until = textOrNull(params, 'until')
  if (from === null && flagOf(params, 'dead'))
    return { ok: true, replayed: await replayDead(services, actor, null) }
  const id = textOf(params, 'id')
  if (from === null) {
    await replayDelivery(services, actor, id)
    return { ok: true, replayed: 1 }
  }
  const bound = (boundText: string) => (/^\d{1,15}$/.test(boundText) ? Number(boundText) : boundText)
  const body = { from: bound(from), until: until === null ? null : bound(until) }
  return { ok: true, endpoint: await replayEndpoint(services, actor, id, body) }
}
