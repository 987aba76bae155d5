/** `@sightglass/sdk` on edge runtimes and wherever there is nothing but web standards: no files, no Node modules. */
import { startClient } from './client/client.ts'
import type { Client, InitOptions } from './client/client-options.ts'
import type { IntelExporter, IntelExporterOptions } from './exporter/exporter-options.ts'
import { startIntelExporter } from './exporter/intel-exporter.ts'
import { edgePlatform } from './platform/edge-platform.ts'

export { detectAgent } from './agents/detect-agent.ts'
export { createGateway } from './gateway/gateway.ts'
export { createNodeRelay } from './relay/node-relay.ts'
export { createRelayHandler } from './relay/relay.ts'
export { createIntelSync } from './sync/intel-sync.ts'
export { verifyWebhook, WebhookError } from './webhook/verify-webhook.ts'
export { IntelError } from './wire/retry.ts'
export type * from './node.ts'

/** Throws on wrong options, such as a key of another kind; afterwards nothing throws. */
export function init(options: InitOptions): Client {
  return startClient(options, edgePlatform)
}

/** Throws on wrong options; afterwards nothing throws. */
export function createIntelExporter(options: IntelExporterOptions): IntelExporter {
  return startIntelExporter(options, edgePlatform)
}
