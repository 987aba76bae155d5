/**
 * The script for the top of a page, before any other: records WebMCP from the first registration on. With `data-key` it
 * also loads the browser module and starts the client; otherwise `captureWebMcp` of your own bundle connects later.
 *
 * `<script src="https://sightglass.example/sdk/webmcp.js" data-key="agtx_pk_…" data-site="shop" data-url="/traces">`
 */
import { recorderOf } from './recorder.ts'
import type { PageWindow } from './model-context.ts'
import type * as BrowserModule from './browser.ts'

const script = document.currentScript as HTMLScriptElement | null
const { key, site, url = '/traces', content } = script?.dataset ?? {}
const options = { content: content !== undefined }
recorderOf(window as PageWindow, options)

if (script !== null && key !== undefined) void start(script.src, key)

async function start(src: string, publishableKey: string): Promise<void> {
  // This script may have an immutable address, whose hash is not that of the module.
  const address = src.replace(/(\/sdk\/)(?:\w+\/)?webmcp\.js.*$/, '$1browser.js')
  const { captureWebMcp, createBrowserExporter, init } = (await import(address)) as typeof BrowserModule
  const siteId = site === undefined ? {} : { siteId: site }
  const client = init({ publishableKey, ...siteId, exporters: [createBrowserExporter({ url })] })
  captureWebMcp(client, options)
}
