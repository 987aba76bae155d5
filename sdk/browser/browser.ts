/** `@sightglass/sdk/browser`: the entry point for pages, with `init` and `createBrowserExporter`. */
import { startClient } from '../client/client.ts'
import type { Client, InitOptions } from '../client/client-options.ts'
import { edgePlatform } from '../platform/edge-platform.ts'

export { createBrowserExporter } from './browser-exporter.ts'

/** Throws on invalid options. Nothing throws afterwards. */
export function init(options: InitOptions): Client {
  return startClient(options, { ...edgePlatform, isPage: true })
}
