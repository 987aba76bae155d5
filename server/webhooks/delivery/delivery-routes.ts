/** Routes of deliveries below one address: test, list, one with its attempts, replay. */
import { Elysia } from 'elysia'
import { AppError } from '../../errors.ts'
import { json, jsonText } from '../../http/response.ts'
import { readJsonObject } from '../../http/body.ts'
import { readQuery } from '../../http/query.ts'
import { limits } from '../../limits.ts'
import type { Store } from '../../../db/contract/store.ts'
import type { Clock } from '../../clock.ts'
import type { CursorCipher } from '../../http/cursor-cipher.ts'
import type { Webhooks } from '../start.ts'
import type { Access } from '../access.ts'
import { findDelivery, replayDelivery, scheduleDelivery } from './deliveries.ts'
import { readDeliveryPage } from './delivery-page.ts'
import { readTestBody } from './payload.ts'
import { attemptView, deliveryText } from '../view.ts'

export interface DeliveryRoutesServices {
  store: Store
  clock: Clock
  cursorCipher: CursorCipher
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
        const who = await access.write(request)
        readQuery(request, {})
        const deliveryId = await scheduleDelivery(webhooks, who, await readTestBody(request))
        return json({ ok: true, deliveryId }, 202)
      },
      unparsed,
    )
    .get(base, async ({ request }) => {
      const { orgId } = await access.read(request)
      const page = await readDeliveryPage({ store, cursorCipher }, orgId, request)
      const deliveries = page.deliveries.map((delivery) => deliveryText(delivery)).join(',')
      return jsonText(`{"deliveries":[${deliveries}],"nextCursor":${JSON.stringify(page.nextCursor)}}`)
    })
    .get(`${base}/:id`, async ({ request, params }) => {
      // The router takes the address of the test delivery for an id; no delivery is called so.
      if (params.id === 'test')
        throw new AppError('method_not_allowed', 'Method not allowed. This endpoint accepts POST.', {
          headers: { allow: 'POST' },
        })
      const { orgId } = await access.read(request)
      readQuery(request, {})
      const { delivery, attempts } = await findDelivery(store, orgId, params.id)
      return jsonText(deliveryText(delivery, { attemptLog: attempts.map(attemptView) }))
    })
    .post(
      `${base}/:id/replay`,
      async ({ request, params }) => {
        const who = await access.write(request)
        readQuery(request, {})
        await readJsonObject(request, { bytesMax: limits.jsonBodyBytesMax }, { emptyIsObject: true })
        await replayDelivery({ store, clock }, who, params.id)
        return json({ ok: true, deliveryId: params.id }, 202)
      },
      unparsed,
    )
}
