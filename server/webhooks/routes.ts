/** The webhook endpoints of the public API (contract §9): deliveries, endpoints and rules, by secret key. */
import { Elysia } from 'elysia'
import type { Scope, KeyGuard } from '../http/guard.ts'
import { deliveryRoutes, type DeliveryRoutesServices } from './delivery/delivery-routes.ts'
import { endpointRoutes, type EndpointRoutesServices } from './endpoints/endpoint-routes.ts'
import { ruleRoutes, type RuleRoutesServices } from './alerts/rule-routes.ts'
import type { Access } from './access.ts'

export interface WebhookRoutesServices
  extends EndpointRoutesServices, RuleRoutesServices, DeliveryRoutesServices {
  guard: KeyGuard
}

export function webhookRoutes(services: WebhookRoutesServices) {
  const admit = async (request: Request, scope: Scope) => {
    const { orgId, id } = await services.guard.gateway(request, scope)
    return { orgId, actor: `key:${id}` }
  }
  const access: Access = {
    read: (request) => admit(request, 'webhooks:read'),
    write: (request) => admit(request, 'webhooks:write'),
  }
  return new Elysia()
    .use(endpointRoutes(services, '/v1/webhooks/endpoints', access))
    .use(ruleRoutes(services, '/v1/webhooks', access))
    .use(deliveryRoutes(services, '/v1/webhooks', access))
}
