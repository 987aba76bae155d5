/** The webhook endpoints of the public API (contract §9): deliveries, endpoints and rules, by secret key. */
import { Elysia } from 'elysia'
import type { Scope } from '../http/guard.ts'
import type { Parts } from '../services.ts'
import { deliveryRoutes } from './delivery/delivery-routes.ts'
import { endpointRoutes } from './endpoints/endpoint-routes.ts'
import { ruleRoutes } from './alerts/rule-routes.ts'
import type { Access } from './access.ts'

export function webhookRoutes(parts: Parts) {
  const admit = async (request: Request, scope: Scope) => {
    const { orgId, id } = await parts.guard.gateway(request, scope)
    return { orgId, actor: `key:${id}` }
  }
  const access: Access = {
    read: (request) => admit(request, 'webhooks:read'),
    write: (request) => admit(request, 'webhooks:write'),
  }
  return new Elysia()
    .use(endpointRoutes(parts, '/v1/webhooks/endpoints', access))
    .use(ruleRoutes(parts, '/v1/webhooks', access))
    .use(deliveryRoutes(parts, '/v1/webhooks', access))
}
