/** Routes of deliveries: send a test, list, show one with its attempts, replay. */
import { Elysia } from 'elysia'
import { AppError } from '../errors.ts'
import { json, jsonText } from '../http/response.ts'
import { mediaType, parseJson, readBody, readJsonObject } from '../http/body.ts'
import { invalidQuery, readLimit, readQuery, type ParameterKind } from '../http/request.ts'
import { limits } from '../limits.ts'
import { deliveryStatuses, findDelivery, replayDelivery, scheduleDelivery } from './delivery/deliveries.ts'
import { attemptView, deliveryText, type Access } from './view.ts'
import { nestsDeeperThan, parseExact } from '../text/json-scan.ts'
import { wrongField } from '../http/validate.ts'
import type { Store } from '../../db/contract/store.ts'
import type { Clock } from '../clock.ts'
import type { Cipher } from '../system/encryption.ts'
import type { Webhooks } from './start.ts'
import type { DeliveryStatus, StoredDelivery } from '../../db/contract/webhooks.ts'
import type { Delivery } from '../../db/contract/webhooks.ts'

export interface DeliveryRoutesServices {
  store: Store
  clock: Clock
  cursorCipher: Cipher
  webhooks: Webhooks
}

const unparsed = { parse: 'none' } as const

export function deliveryRoutes(
  { store, cursorCipher, clock, webhooks }: DeliveryRoutesServices,
  base: string,
  access: Access,
) {
  return new Elysia()
    .post(
      `${base}/test`,
      async ({ request }) => {
        const actor = await access.write(request)
        readQuery(request, {})
        const deliveryId = await scheduleDelivery(webhooks, actor, await readTestBody(request))
        return json({ ok: true, deliveryId }, 202)
      },
      unparsed,
    )
    .get(base, async ({ request }) => {
      const { orgId } = await access.read(request)
      const page = await readDeliveryPage({ store, cursorCipher }, orgId, request)
      const deliveries = page.deliveries.map((delivery) => deliveryText(webhooks, delivery)).join(',')
      return jsonText(`{"deliveries":[${deliveries}],"nextCursor":${JSON.stringify(page.nextCursor)}}`)
    })
    .get(`${base}/:id`, async ({ request, params }) => {
      // The router would read the path of the test delivery as an id.
      if (params.id === 'test')
        throw new AppError('method_not_allowed', 'Method not allowed. This endpoint accepts POST.', {
          headers: { allow: 'POST' },
        })
      const { orgId } = await access.read(request)
      readQuery(request, {})
      const { delivery, attempts } = await findDelivery(store, orgId, params.id)
      return jsonText(deliveryText(webhooks, delivery, { attemptLog: attempts.map(attemptView) }))
    })
    .post(
      `${base}/:id/replay`,
      async ({ request, params }) => {
        const actor = await access.write(request)
        readQuery(request, {})
        await readJsonObject(request, { bytesMax: limits.jsonBodyBytesMax }, { emptyIsObject: true })
        await replayDelivery({ store, clock }, actor, params.id)
        return json({ ok: true, deliveryId: params.id }, 202)
      },
      unparsed,
    )
}

const envelopeBytesMax = 16 * 1024 // url, field names and white space around the payload

async function readTestBody(request: Request): Promise<{ url: unknown; payload: string }> {
  mediaType(request.headers.get('content-type'), ['application/json'])
  const text = await readBody(request, { bytesMax: limits.webhookPayloadBytesMax + envelopeBytesMax })
  if (nestsDeeperThan(text, limits.jsonDepthMax)) {
    throw wrongField('', `The body is nested deeper than ${limits.jsonDepthMax} levels.`, 'too_deep')
  }
  const value = parseJson(text)
  if (!isObject(value)) throw wrongField('', 'The body must be a JSON object.', 'wrong_type')
  const { url, payload } = value
  if (payload === undefined || payload === null) return { url, payload: '{}' }
  if (!isObject(payload)) throw wrongField('payload', 'payload must be an object', 'wrong_type')
  const exact = payloadText(text)
  if (Buffer.byteLength(exact) > limits.webhookPayloadBytesMax) {
    const message = `payload must be at most ${limits.webhookPayloadBytesMax} bytes`
    throw wrongField('payload', message, 'too_large')
  }
  return { url, payload: exact }
}

function isObject(value: unknown): value is { [name: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The payload of a test as compact JSON, with every number spelled as it was sent. */
export function payloadText(text: string): string {
  return JSON.stringify((parseExact(text) as { payload: unknown }).payload)
}

const parameters: Record<string, ParameterKind> = {
  status: 'one',
  endpointId: 'one',
  limit: 'one',
  cursor: 'one',
}
const purpose = 'webhooks-cursor'
const pageDefault = 50
const pageMax = 200

/** A cursor alone continues with its own filters; with other filters or in another organization it is rejected. */
async function readDeliveryPage(
  services: { store: Pick<Store, 'webhooks'>; cursorCipher: Cipher },
  orgId: string,
  request: Request,
): Promise<{ deliveries: StoredDelivery[]; nextCursor: string | null }> {
  const query = readQuery(request, parameters)
  const filters = { status: readStatus(query.one('status')), endpointId: query.one('endpointId') ?? null }
  const limit = readLimit(query, pageDefault, pageMax)
  const cursor = query.one('cursor')
  const walk =
    cursor === undefined
      ? { ...filters, beforeSeq: null }
      : decryptCursor(services.cursorCipher, cursor, orgId, filters)
  const page = await services.store.webhooks.list({
    orgId,
    ...walk,
    limit,
    bytesMax: limits.webhookPageBytesMax,
  })
  const { status, endpointId } = walk
  const nextCursor =
    page.next === null ? null : services.cursorCipher.encrypt(purpose, [orgId, status, endpointId, page.next])
  return { deliveries: page.deliveries, nextCursor }
}

interface Filters {
  status: DeliveryStatus | null
  endpointId: string | null
}

function decryptCursor(
  cursorCipher: Cipher,
  text: string,
  orgId: string,
  filters: Filters,
): Filters & { beforeSeq: number } {
  const decrypted = cursorCipher.decrypt(purpose, text) as
    [string, DeliveryStatus | null, string | null, number] | null
  if (decrypted === null || decrypted[0] !== orgId) throw invalidQuery('cursor', 'Invalid cursor.')
  const [, status, endpointId, beforeSeq] = decrypted
  const differs = (requestValue: string | null, cursorValue: string | null) =>
    requestValue !== null && requestValue !== cursorValue
  if (differs(filters.status, status) || differs(filters.endpointId, endpointId)) {
    throw invalidQuery(
      'cursor',
      'This cursor was issued for other filters. Send it without filters or with the same ones.',
    )
  }
  return { status, endpointId, beforeSeq }
}

function readStatus(text: string | undefined): DeliveryStatus | null {
  if (text === undefined) return null
  const deliveryStatus = deliveryStatuses.find((status) => status === text)
  if (deliveryStatus === undefined)
    throw invalidQuery('status', `status must be one of ${deliveryStatuses.join(', ')}`)
  return deliveryStatus
}
