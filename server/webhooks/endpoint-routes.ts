/** Routes of endpoints: create, list, change, pause, resume, test, replay, rotate, delete. */
import { Elysia } from 'elysia'
import { json } from '../http/response.ts'
import { readJsonObject } from '../http/body.ts'
import { readQuery } from '../http/request.ts'
import { limits } from '../limits.ts'
import type { Webhooks } from './start.ts'
import type { Access } from './view.ts'
import {
  changeEndpoint,
  createEndpoint,
  deleteEndpoint,
  findEndpoint,
  listEndpoints,
  pauseEndpoint,
  resumeEndpoint,
  rotateEndpointSecret,
} from './endpoints/endpoints.ts'
import { replayEndpoint } from './endpoints/replay-range.ts'
import { testEndpoint } from './delivery/deliveries.ts'

export interface EndpointRoutesServices {
  webhooks: Webhooks
}

const unparsed = { parse: 'none' } as const
const bodyLimits = { bytesMax: limits.jsonBodyBytesMax }

/** These bodies have no fields, but must be an object when sent. */
const emptyBody = (request: Request) => readJsonObject(request, bodyLimits, { emptyIsObject: true })

export function endpointRoutes(services: EndpointRoutesServices, base: string, access: Access) {
  return new Elysia().use(recordRoutes(services, base, access)).use(actionRoutes(services, base, access))
}

function recordRoutes({ webhooks }: EndpointRoutesServices, base: string, access: Access) {
  const recordPath = `${base}/:id` as const
  return new Elysia()
    .get(base, async ({ request }) => {
      const { orgId } = await access.read(request)
      readQuery(request, {})
      return json({ endpoints: await listEndpoints(webhooks, orgId) })
    })
    .post(
      base,
      async ({ request }) => {
        const actor = await access.write(request)
        readQuery(request, {})
        return json(await createEndpoint(webhooks, actor, await readJsonObject(request, bodyLimits)), 201)
      },
      unparsed,
    )
    .get(recordPath, async ({ request, params }) => {
      const { orgId } = await access.read(request)
      readQuery(request, {})
      return json({ endpoint: await findEndpoint(webhooks, orgId, params.id) })
    })
    .patch(
      recordPath,
      async ({ request, params }) => {
        const actor = await access.write(request)
        readQuery(request, {})
        const body = await readJsonObject(request, bodyLimits)
        return json(await changeEndpoint(webhooks, actor, params.id, body))
      },
      unparsed,
    )
    .delete(
      recordPath,
      async ({ request, params }) => {
        const actor = await access.write(request)
        readQuery(request, {})
        await deleteEndpoint(webhooks, actor, params.id)
        return json({ ok: true })
      },
      unparsed,
    )
}

function actionRoutes({ webhooks }: EndpointRoutesServices, base: string, access: Access) {
  return new Elysia()
    .post(
      `${base}/:id/pause`,
      async ({ request, params }) => {
        const actor = await access.write(request)
        readQuery(request, {})
        await emptyBody(request)
        return json({ endpoint: await pauseEndpoint(webhooks, actor, params.id) })
      },
      unparsed,
    )
    .post(
      `${base}/:id/resume`,
      async ({ request, params }) => {
        const actor = await access.write(request)
        readQuery(request, {})
        await emptyBody(request)
        return json({ endpoint: await resumeEndpoint(webhooks, actor, params.id) })
      },
      unparsed,
    )
    .post(
      `${base}/:id/rotate-secret`,
      async ({ request, params }) => {
        const actor = await access.write(request)
        readQuery(request, {})
        await emptyBody(request)
        return json(await rotateEndpointSecret(webhooks, actor, params.id))
      },
      unparsed,
    )
    .post(
      `${base}/:id/test`,
      async ({ request, params }) => {
        const actor = await access.write(request)
        readQuery(request, {})
        await emptyBody(request)
        return json({ ok: true, deliveryId: await testEndpoint(webhooks, actor, params.id) }, 202)
      },
      unparsed,
    )
    .post(
      `${base}/:id/replay`,
      async ({ request, params }) => {
        const actor = await access.write(request)
        readQuery(request, {})
        const body = await readJsonObject(request, bodyLimits)
        return json({ ok: true, endpoint: await replayEndpoint(webhooks, actor, params.id, body) }, 202)
      },
      unparsed,
    )
}
