/** `@sightglass/sdk` on Node.js, Bun and Deno, with a spool on disk, threaded gzip and a flush at exit. */
import { startClient, type Client, type InitOptions } from './client/client.ts'
import {
  startIntelExporter,
  type IntelExporter,
  type IntelExporterOptions,
} from './exporter/intel-exporter.ts'
import { nodePlatform } from './platform/node-platform.ts'

export { detectAgent } from './agents/detect-agent.ts'
export { createGateway } from './gateway/gateway.ts'
export { createNodeRelay } from './relay/node-relay.ts'
export { createRelayHandler } from './relay/relay.ts'
export { createIntelSync } from './sync/intel-sync.ts'
export { verifyWebhook, WebhookError } from './webhook/verify-webhook.ts'
export { IntelError } from './wire/retry.ts'
export type { DetectedAgent } from './agents/detect-agent.ts'
export type { Session, VisitorOptions, VisitorRequest } from './client/visitor-session.ts'
export type { Client, Exporter, ExporterHost, InitOptions, ToolChange } from './client/client.ts'
export type {
  Agent,
  CompleteEvent,
  EventType,
  Metadata,
  Outcome,
  Policy,
  TraceEvent,
} from './client/event.ts'
export type { Issue, OnError, Problem, ProblemCode } from './client/problem.ts'
export type { ExporterStats } from './exporter/delivery.ts'
export type { IntelExporter, IntelExporterOptions } from './exporter/intel-exporter.ts'
export type { AuditEntry, AuditQuery, Gateway, GatewayOptions } from './gateway/gateway.ts'
export type { Explored, ExploreQuery, Metrics, MetricsQuery, TracesQuery } from './gateway/gateway.ts'
export type { Identity, RelayOptions } from './relay/receive-events.ts'
export type { IntelSync, IntelSyncOptions, MemorySnapshot, Tool } from './sync/intel-sync.ts'
export type { VerifyOptions, WebhookFault, WebhookPayload } from './webhook/verify-webhook.ts'

/** Throws on invalid options, such as the wrong kind of key. Nothing throws afterwards. */
export function init(options: InitOptions): Client {
  return startClient(options, nodePlatform)
}

/** Throws on invalid options. Nothing throws afterwards. */
export function createIntelExporter(options: IntelExporterOptions): IntelExporter {
  return startIntelExporter(options, nodePlatform)
}
