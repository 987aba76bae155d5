/** The routes of every feature, and what happens to a request before and after its route. */
import { Elysia, type AnyElysia } from 'elysia'
import { accountRoutes, peopleRoutes } from './identity/people/routes.ts'
import { auditRoutes, dashboardAuditRoutes } from './audit/routes.ts'
import { providerRoutes } from './identity/sign-in/provider-routes.ts'
import { authRoutes, signInRoutes } from './identity/sign-in/routes.ts'
import { clientPackageRoutes, docsRoutes } from './docs/routes.ts'
import { dashboardCountRoutes } from './dashboard/routes.ts'
import { backupRoutes } from './operations/backup/routes.ts'
import { doctorRoutes } from './operations/doctor/routes.ts'
import { exploreRoutes } from './api/explore/routes.ts'
import { evidenceRoutes } from './evidence/routes.ts'
import { AppError } from './errors.ts'
import { healthRoutes, systemRoutes } from './operations/health/routes.ts'
import { assetAnswer } from './http/assets.ts'
import { contextOf, pathOf } from './http/request.ts'
import { errorResponse, toAppError } from './http/response.ts'
import { rateLimitHeaders } from './http/rate-limit.ts'
import { ingestHealthRoutes } from './ingest/health-routes.ts'
import { eventsPath, ingestRoutes, postEvents } from './ingest/routes.ts'
import { keyRoutes } from './identity/keys/routes.ts'
import { liveRoutes } from './api/live/routes.ts'
import { mcpRoutes } from './mcp/routes.ts'
import { memoryRoutes } from './api/registry/memory-routes.ts'
import { metricsRoutes } from './api/metrics/routes.ts'
import { otlpRoutes } from './otlp/routes.ts'
import { orgRoutes, siteRoutes } from './identity/organizations/routes.ts'
import { prometheusRoutes } from './operations/metrics-endpoint/routes.ts'
import { reportRoutes } from './reports/routes.ts'
import { requestRoutes } from './api/requests/routes.ts'
import { robotsRoutes } from './robots/routes.ts'
import { retentionRoutes } from './operations/retention/routes.ts'
import { sessionRoutes } from './api/sessions/routes.ts'
import { dashboardTraceRoutes, logsRoutes } from './api/traces/dashboard-routes.ts'
import { toolRoutes } from './api/registry/tool-routes.ts'
import { traceRoutes } from './api/traces/routes.ts'
import { dashboardWebhookRoutes, webhookRoutes } from './webhooks/routes.ts'
import { shareRoutes } from './sharing/routes.ts'
import { viewRoutes } from './dashboard/saved-view-routes.ts'
import { accessRoutes } from './access/routes.ts'
import { sourceRoutes } from './access/source-routes.ts'
import type { Services } from './services.ts'

interface App {
  /** Answers one request; never throws. The request must have a context (`http/request.ts`). */
  handle(request: Request): Promise<Response>
  routes: Route[]
}

/** Adds the rate-limit headers to a response, errors included. */
function withRateLimits(request: Request, response: Response): Response {
  const applied = contextOf(request).rateLimits
  if (applied === undefined) return response
  for (const [name, value] of Object.entries(rateLimitHeaders(applied))) response.headers.set(name, value)
  return response
}

/** The routes of every feature. */
function featureRoutes(services: Services, post: ReturnType<typeof postEvents>) {
  return new Elysia({ normalize: false })
    .use(healthRoutes(services))
    .use(docsRoutes(services))
    .use(clientPackageRoutes(services))
    .use(prometheusRoutes(services))
    .use(ingestRoutes(services, post))
    .use(otlpRoutes(services))
    .use(accessRoutes(services))
    .use(sourceRoutes(services))
    .use(ingestHealthRoutes(services))
    .use(toolRoutes(services))
    .use(memoryRoutes(services))
    .use(metricsRoutes(services))
    .use(requestRoutes(services))
    .use(reportRoutes(services))
    .use(exploreRoutes(services))
    .use(sessionRoutes(services))
    .use(dashboardCountRoutes(services))
    .use(traceRoutes(services))
    .use(mcpRoutes(services))
    .use(webhookRoutes(services))
    .use(auditRoutes(services))
    .use(authRoutes(services))
    .use(signInRoutes(services))
    .use(providerRoutes(services))
    .use(accountRoutes(services))
    .use(peopleRoutes(services))
    .use(orgRoutes(services))
    .use(retentionRoutes(services))
    .use(siteRoutes(services).use(robotsRoutes(services)))
    .use(keyRoutes(services))
    .use(backupRoutes(services))
    .use(doctorRoutes(services))
    .use(evidenceRoutes(services))
    .use(systemRoutes(services))
    .use(dashboardAuditRoutes(services))
    .use(dashboardTraceRoutes(services))
    .use(logsRoutes(services).use(viewRoutes(services)))
    .use(dashboardWebhookRoutes(services))
    .use(liveRoutes(services))
    .use(shareRoutes(services))
}

export function createApp(services: Services): App {
  const post = postEvents(services)
  const fail = (thrown: unknown, request: Request) => {
    const { id } = contextOf(request)
    return errorResponse(toAppError(thrown, id, services.log), id, request)
  }
  // Elysia's host shortcut breaks wildcard routes for short Host headers, and its normalization drops fields.
  const app = new Elysia({ handler: { standardHostname: false }, normalize: false })
    .onError(({ error, code, request }) => (code === 'NOT_FOUND' ? noRoute(request) : fail(error, request)))
    .onBeforeHandle({ as: 'global' }, ({ request, route }) => void (contextOf(request).route = route))
    .use(featureRoutes(services, post))
  const routes = routesOf(app)
  const methodsOf = methodFinder(routes)

  /** 405 when the path has routes for other methods, else a file or page of the dashboard, else 404. */
  function noRoute(request: Request): Response {
    const methods = methodsOf(pathOf(request))
    if (methods.length === 0) {
      const readable = request.method === 'GET' || request.method === 'HEAD'
      const page = readable ? assetAnswer(services.assets, request) : null
      return page ?? fail(new AppError('not_found', 'No such page or endpoint.', otlpHint(request)), request)
    }
    const headers = { allow: methods.join(', ') }
    return fail(
      new AppError('method_not_allowed', `Method not allowed. This endpoint accepts ${headers.allow}.`, {
        headers,
      }),
      request,
    )
  }

  /** Without the router, which would cost a tenth of the work for one event. */
  function postAt(request: Request): Promise<Response> {
    contextOf(request).route = eventsPath
    return post(request)
  }

  return {
    routes,
    async handle(request) {
      try {
        services.rateLimits.address(request)
        const response = isPost(request) ? await postAt(request) : await app.fetch(request)
        return withRateLimits(request, response)
      } catch (thrown) {
        return withRateLimits(request, fail(thrown, request))
      }
    },
  }
}

/** Whether this posts events, by far the most frequent request. The router accepts other spellings of the path too. */
function isPost(request: Request): boolean {
  return request.method === 'POST' && pathOf(request) === eventsPath
}

/** Exporters whose address has a path, or that use gRPC, post to other paths. */
function otlpHint(request: Request): { hint?: string } {
  const path = pathOf(request)
  if (request.method !== 'POST' || !/opentelemetry|\/v1\/(?:traces|logs|metrics)/.test(path)) return {}
  const hint =
    'To send OpenTelemetry data, set OTEL_EXPORTER_OTLP_ENDPOINT to the address of this server without a path, and ' +
    'OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf. gRPC is not supported.'
  return { hint }
}

export interface Route {
  method: string
  path: string // with :parameters
}

function routesOf(app: AnyElysia): Route[] {
  return app.routes.map(({ method, path }) => ({ method, path }))
}

/** Returns a function from a path to its methods, for `Allow`; HEAD comes with GET; empty when no route matches. */
export function methodFinder(routes: Route[]): (path: string) => string[] {
  const table = new Map<string, { pattern: RegExp; methods: Set<string>; isLiteral: boolean }>()
  for (const { method, path } of routes) {
    let row = table.get(path)
    if (!row) {
      // The router accepts a trailing slash too.
      const source = path.split('/').map((part) => (part.startsWith(':') ? '[^/]+' : RegExp.escape(part)))
      const pattern = new RegExp(`^${source.join('/')}/?$`)
      row = { pattern, methods: new Set(), isLiteral: !path.includes('/:') }
      table.set(path, row)
    }
    row.methods.add(method)
    if (method === 'GET') row.methods.add('HEAD')
  }
  return (path) => {
    const rows = [...table.values()].filter(({ pattern }) => pattern.test(path))
    // A literal path wins over one with an id: the methods of the id route do not count.
    const literal = rows.filter(({ isLiteral }) => isLiteral)
    const allowedMethods = (literal.length > 0 ? literal : rows).flatMap(({ methods }) => [...methods])
    return [...new Set(allowedMethods)].sort()
  }
}
