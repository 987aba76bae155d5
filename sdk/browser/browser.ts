/** What a page needs and nothing else: `init` and `createBrowserExporter`. */
import { startClient } from '../client/client.ts'
import type { Client, InitOptions } from '../client/client-options.ts'
import { edgePlatform } from '../platform/edge-platform.ts'

export { createBrowserExporter } from './browser-exporter.ts'

/** Throws on wrong options; afterwards nothing throws. */
export function init(options: InitOptions): Client {
  return startClient(options, { ...edgePlatform, isPage: true })
}
