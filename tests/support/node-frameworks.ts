/** Servers of the frameworks on Node's HTTP server, with the middleware. Runs on Bun and, bundled, on Node.js. */
import express from 'express'
import fastify from 'fastify'
import Koa from 'koa'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { sightglass } from '../../sdk/middleware/middleware.ts'
import { answer, headersOf, type Running } from './framework-requests.ts'

export type Middleware = ReturnType<typeof sightglass>
export type Frameworks = { [name: string]: (middleware: Middleware) => Promise<Running> | Running }

async function listen(server: Server): Promise<Running> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const stop = (): void => {
    server.closeAllConnections()
    server.close()
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, stop }
}

/** Throws after the response to `/late`. */
async function write(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { status, body } = await answer(request.url ?? '/', request)
  response.writeHead(status, status === 204 ? {} : headersOf(body))
  response.end(request.method === 'HEAD' ? '' : body)
  if (request.url === '/late') throw new Error('after the response')
}

/** As an error handler that does not ask whether there was a response already. */
function fail(response: ServerResponse): void {
  response.statusCode = 500
  response.end()
}

const bareHandler = (request: IncomingMessage, response: ServerResponse): void =>
  void write(request, response).catch(() => fail(response))

export const nodeFrameworks: Frameworks = {
  express(middleware) {
    const app = express()
    app.use(middleware)
    app.all('/{*path}', write)
    app.use((_error: unknown, _request: unknown, response: ServerResponse, _next: unknown) => fail(response))
    return listen(createServer(app))
  },
  'node:http': (middleware) =>
    listen(
      createServer((request, response) =>
        middleware(request, response, () => bareHandler(request, response)),
      ),
    ),
  async fastify(middleware) {
    const app = fastify()
    await app.register(middleware)
    app.route({
      method: ['GET', 'HEAD', 'POST', 'PUT'],
      url: '*',
      handler: async (request, reply) => {
        const { status, body } = await answer(request.url, request)
        reply.code(status).headers(status === 204 ? {} : headersOf(body))
        reply.send(body)
        if (request.url === '/late') throw new Error('after the response')
        return reply
      },
    })
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    return { url, stop: () => app.close() }
  },
  koa(middleware) {
    const app = new Koa()
    app.silent = true
    app.use(middleware)
    app.use(async (context: KoaContext) => {
      if (context.path === '/late') {
        context.respond = false
        return write(context.req, context.res)
      }
      const { status, body } = await answer(`${context.path}?${context.querystring}`, context)
      context.status = status
      if (status === 204) return
      context.body = body
      context.set(headersOf(body))
    })
    return listen(createServer(app.callback()))
  },
}

interface KoaContext {
  path: string
  querystring: string
  status: number
  body: string
  respond: boolean
  req: IncomingMessage
  res: ServerResponse
  set(fields: object): void
}

/** A server without middleware that is watched from within its first request on, to `/early`, as Next.js is. */
export async function watchedServer(middleware: Middleware): Promise<Running> {
  let isWatched = false
  const running = await listen(
    createServer((request, response) => {
      if (!isWatched) middleware.watchHttp()
      isWatched = true
      bareHandler(request, response)
    }),
  )
  await (await fetch(`${running.url}/early`, { headers: { 'user-agent': 'PerplexityBot/1.0' } })).text()
  return running
}
