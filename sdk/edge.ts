/** `@sightglass/sdk` on edge runtimes: web standards only, no files, no Node.js modules. */
import { startClient, type Client, type InitOptions } from './client/client.ts'
import {
  startIntelExporter,
  type IntelExporter,
  type IntelExporterOptions,
} from './exporter/intel-exporter.ts'
import { edgePlatform } from './platform/edge-platform.ts'

export { detectAgent } from './agents/detect-agent.ts'
export { createGateway } from './gateway/gateway.ts'
export { createNodeRelay } from './relay/node-relay.ts'
export { createRelayHandler } from './relay/relay.ts'
export { createIntelSync } from './sync/intel-sync.ts'
export { verifyWebhook, WebhookError } from './webhook/verify-webhook.ts'
export { IntelError } from './wire/retry.ts'
export type * from './node.ts'

/** Throws on invalid options, such as the wrong kind of key. Nothing throws afterwards. */
export function init(options: InitOptions): Client {
  return startClient(options, edgePlatform)
}

/** Throws on invalid options. Nothing throws afterwards. */
export function createIntelExporter(options: IntelExporterOptions): IntelExporter {
  return startIntelExporter(options, edgePlatform)
}
