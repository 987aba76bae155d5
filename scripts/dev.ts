/**
 * `npm run dev [-- --api http://127.0.0.1:7400 --listen 127.0.0.1:7410]`: the dashboard under work in front of a
 * running appliance. Bundles `web/` again on every change; everything that is not a page goes to the appliance.
 */
import { staticPlugin } from '@elysiajs/static'
import { Elysia } from 'elysia'
import { watch } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { root } from './build.ts'
import { bundleWeb } from './bundle-web.ts'

const { values: options } = parseArgs({
  options: {
    api: { type: 'string', default: 'http://127.0.0.1:7400' },
    listen: { type: 'string', default: '127.0.0.1:7410' },
  },
})
const outDir = join(root, 'dist', 'dev')
const say = (text: string): boolean => process.stdout.write(`${text}\n`)

async function bundle(): Promise<void> {
  const startMs = performance.now()
  try {
    await bundleWeb({ root, outDir, minify: false })
    say(`bundled in ${Math.round(performance.now() - startMs)} ms`)
  } catch (error) {
    say(error instanceof Error ? error.message : String(error)) // the next save may fix it
  }
}

/** Forwards a request and streams the response. The appliance checks Origin against its own address. */
async function proxy(request: Request): Promise<Response> {
  const url = new URL(request.url)
  const headers = new Headers(request.headers)
  headers.set('host', new URL(options.api).host)
  if (headers.has('origin')) headers.set('origin', options.api)
  try {
    return await fetch(new URL(url.pathname + url.search, options.api), {
      method: request.method,
      headers,
      body: request.body,
      redirect: 'manual',
      decompress: false,
      signal: request.signal,
    })
  } catch {
    return new Response(`no appliance answers at ${options.api}: start one with npm start\n`, { status: 502 })
  }
}

await bundle()
let pending: ReturnType<typeof setTimeout> | undefined
watch(join(root, 'web'), { recursive: true }, () => {
  clearTimeout(pending)
  pending = setTimeout(() => void bundle(), 50) // editors save in several steps
})

const [hostname = '127.0.0.1', port = '7410'] = options.listen.split(':')
const ofTheAppliance = /^\/(api|v1|healthz|readyz|openapi\.json)(\/|$)/
const app = new Elysia({ handler: { standardHostname: false } })
// Before routing, because a GET route of the files wins over a route for all methods.
app.onRequest(({ request }) => {
  if (ofTheAppliance.test(new URL(request.url).pathname)) return proxy(request)
})
// Also before the files, which would not find the path of a page, such as /settings/keys.
app.onError(({ code, set }) => {
  if (code !== 'NOT_FOUND') return
  set.status = 200
  return new Response(Bun.file(join(outDir, 'index.html')))
})
app.use(await staticPlugin({ assets: outDir, prefix: '/', alwaysStatic: false, indexHTML: false }))
app.listen({ hostname, port: Number(port), reusePort: false })
say(`dashboard under work on http://${hostname}:${app.server?.port}, appliance at ${options.api}`)
