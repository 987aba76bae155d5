/** One list of 30 requests gives the same responses and the same events in every framework, each as a real server. */
import { describe, expect, test } from 'bun:test'
import { Elysia } from 'elysia'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { CompleteEvent } from '../client/event.ts'
import type { Problem } from '../client/problem.ts'
import { init } from '../node.ts'
import { publishableKey } from '../../tests/support/fake-appliance.ts'
import { agentOf, type MiddlewareOptions, sightglass } from './middleware.ts'

const agents = {
  gpt: 'Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)',
  claude: 'Mozilla/5.0 (compatible; ClaudeBot/1.0; +claudebot@anthropic.com)',
  person: 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/156.0 Safari/537.36',
  none: '',
}
type Sent = [agent: keyof typeof agents, path: string, method?: string, headers?: { [name: string]: string }]

const sent: Sent[] = [
  ...['/', '/docs?q=secret', '/docs/a%20b', '/a;b=c', '/%E2%82%AC', '/very/'.padEnd(700, 'x')].flatMap(
    (path): Sent[] => [
      ['gpt', path],
      ['claude', path],
    ],
  ),
  ...[
    '/status/204',
    '/status/301',
    '/status/401',
    '/status/403',
    '/status/404',
    '/status/429',
    '/status/503',
  ].map((path): Sent => ['gpt', path]),
  ['gpt', '/throws'],
  ['gpt', '/', 'HEAD'],
  ['claude', '/', 'POST'],
  ['gpt', '/', 'PUT'],
  ['gpt', '/', 'GET', { referer: 'https://user@Search.Example:8443/find?q=secret' }],
  ['gpt', '/', 'GET', { referer: 'not a url' }],
  ['gpt', '/skipped'],
  ['gpt', '/slow'],
  ['person', '/'],
  ['person', '/status/404'],
  ['none', '/'],
]

/** What the handler of every framework answers. */
async function answer(path: string, request: object): Promise<{ status: number; body: string }> {
  const [, name, status] = path.split('?')[0]!.split('/')
  if (name === 'throws') throw new Error('handler')
  if (name === 'slow') await Bun.sleep(20)
  const { agent } = request as { agent?: unknown }
  expect(agent ?? null).toEqual(agentOf(request))
  const code = name === 'status' ? Number(status) : 200
  return { status: code, body: code === 204 ? '' : JSON.stringify({ agent: agent ?? null }) }
}

const headersOf = (body: string) => ({
  'content-type': 'application/json',
  'content-length': String(body.length),
})
const fetchAnswer = async (request: Request): Promise<Response> => {
  const { pathname, search } = new URL(request.url)
  const { status, body } = await answer(pathname + search, request)
  const headers = status === 204 ? {} : headersOf(body)
  return new Response(status === 204 || request.method === 'HEAD' ? null : body, { status, headers })
}

type Middleware = ReturnType<typeof sightglass>
interface Running {
  url: string
  stop(): unknown
}

async function listen(server: Server): Promise<Running> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const stop = (): void => {
    server.closeAllConnections()
    server.close()
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, stop }
}

function serve(
  fetch: (request: Request, server: Bun.Server<undefined>) => Response | Promise<Response>,
): Running {
  const error = (): Response => new Response('', { status: 500 })
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch, error })
  return { url: server.url.origin, stop: () => server.stop(true) }
}

type Frameworks = { [name: string]: (middleware: Middleware) => Promise<Running> | Running }

const onNode: Frameworks = {
  express(middleware) {
    const app = express()
    app.use(middleware)
    app.all('/{*path}', async (request: never, response: never) => writeNode(request, response))
    app.use(
      (
        _error: unknown,
        _request: unknown,
        response: { status(code: number): { end(): void } },
        _next: unknown,
      ) => response.status(500).end(),
    )
    return listen(createServer(app))
  },
  'node:http': (middleware) =>
    listen(
      createServer((request, response) => {
        middleware(request, response, () => {
          writeNode(request as never, response as never).catch(() => {
            response.statusCode = 500
            response.end()
          })
        })
      }),
    ),
  async fastify(middleware) {
    const app = fastify()
    await app.register(middleware)
    app.route({
      method: ['GET', 'HEAD', 'POST', 'PUT'],
      url: '*',
      handler: async (request, reply) => {
        const { status, body } = await answer(request.url, request)
        return reply
          .code(status)
          .headers(status === 204 ? {} : headersOf(body))
          .send(body)
      },
    })
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    return { url, stop: () => app.close() }
  },
  koa(middleware) {
    const app = new Koa()
    app.silent = true
    app.use(middleware)
    app.use(
      async (context: {
        path: string
        querystring: string
        status: number
        body: string
        set(fields: object): void
      }) => {
        const { status, body } = await answer(`${context.path}?${context.querystring}`, context)
        context.status = status
        if (status === 204) return
        context.body = body
        context.set(headersOf(body))
      },
    )
    return listen(createServer(app.callback()))
  },
}

const onFetch: Frameworks = {
  hono(middleware) {
    const app = new Hono()
    app.use(middleware)
    app.all('*', (context) => fetchAnswer(context.req.raw))
    app.onError((_, context) => context.body('', 500))
    return serve((request, server) => app.fetch(request, server))
  },
  elysia(middleware) {
    const app = new Elysia().use(middleware).all('/*', ({ request }) => fetchAnswer(request))
    app.onError(() => new Response('', { status: 500 }))
    app.listen({ port: 0, hostname: '127.0.0.1' })
    return { url: app.server!.url.origin, stop: () => app.stop(true) }
  },
  fetch: (middleware) => serve(middleware.fetch((request) => fetchAnswer(request))),
}

const frameworks: Frameworks = { ...onNode, ...onFetch }

interface NodeResponse {
  writeHead(status: number, headers: object): { end(body: string): void }
}

async function writeNode(request: { url: string; method: string }, response: NodeResponse): Promise<void> {
  const { status, body } = await answer(request.url, request)
  response.writeHead(status, status === 204 ? {} : headersOf(body)).end(request.method === 'HEAD' ? '' : body)
}

function collected(options: MiddlewareOptions<{ url: string }> = {}) {
  const events: CompleteEvent[] = []
  const problems: Problem[] = []
  const exporters = [{ export: (event: CompleteEvent) => events.push(event) }]
  const client = init({
    publishableKey,
    siteId: 'shop',
    exporters,
    onError: (problem) => problems.push(problem),
  })
  const middleware = sightglass<{ url: string }>(client, {
    skip: ({ url }) => url.endsWith('/skipped'),
    ...options,
    onError: (problem) => problems.push(problem),
  })
  return { events, problems, client, middleware }
}

/** What must be equal: not the ids and times, nor the size of an error page. */
function comparable(events: CompleteEvent[]): unknown[] {
  const sessions: string[] = []
  return events.map(({ id, sessionId, occurredAt, durationMs, metadata, ...rest }) => {
    if (!sessions.includes(sessionId)) sessions.push(sessionId)
    expect(durationMs ?? 0).toBeLessThan(5_000)
    const fields: { [name: string]: unknown } = { ...metadata }
    if (fields['status'] === 500 || fields['method'] === 'HEAD') delete fields['bytes']
    return { ...rest, session: sessions.indexOf(sessionId), metadata: fields }
  })
}

async function run(running: Running, events: CompleteEvent[]): Promise<string[]> {
  const answers: string[] = []
  for (const [agent, path, method = 'GET', headers = {}] of sent) {
    const before = events.length
    const answered = await fetch(running.url + path, {
      method,
      redirect: 'manual',
      headers: { 'user-agent': agents[agent], host: 'shop.example:8080', connection: 'close', ...headers },
    })
    answers.push(`${answered.status} ${answered.status === 500 ? '' : await answered.text()}`)
    const isReported = (agent === 'gpt' || agent === 'claude') && path !== '/skipped'
    for (
      const deadline = Date.now() + 2_000;
      isReported && events.length === before && Date.now() < deadline;
    )
      await Bun.sleep(1)
  }
  return answers
}

const reference = collected()
const bare = serve(reference.middleware.fetch((request) => fetchAnswer(request)))
const expected = { answers: await run(bare, reference.events), events: comparable(reference.events) }
await bare.stop()

test('the events of the list are those of its agents, with a start of each session', () => {
  expect(sent.length).toBe(30)
  const events = expected.events as { type: string; metadata: { status?: number; page: string } }[]
  expect(events.filter(({ type }) => type === 'agent.detected').length).toBe(2)
  expect(events.filter(({ type }) => type === 'agent.requested').length).toBe(26)
  expect(JSON.stringify(events)).not.toContain('secret')
  expect(events[1]).toMatchObject({
    outcome: 'success',
    agent: { vendor: 'OpenAI', name: 'GPTBot', purpose: 'training', trust: 'detected' },
    metadata: { page: '/', method: 'GET', status: 200, host: 'shop.example', source: 'middleware' },
  })
  expect(expected.answers[0]).toBe(
    '200 {"agent":{"operator":"OpenAI","product":"GPTBot","purpose":"training","verdict":"unverifiable"}}',
  )
})

describe.each(Object.keys(frameworks))('%s', (name) => {
  test('the same 30 requests give the same responses and events', async () => {
    const { events, problems, middleware } = collected()
    const running = await frameworks[name]!(middleware)
    try {
      expect(await run(running, events)).toEqual(expected.answers)
      expect(comparable(events)).toEqual(expected.events)
      expect(problems).toEqual([])
    } finally {
      await running.stop()
    }
  })

  test('throwing hooks and a closed client change no response', async () => {
    const boom = (): never => {
      throw new Error('boom')
    }
    const { events, problems, client, middleware } = collected({
      skip: boom,
      page: boom,
      identify: boom,
      address: boom,
    })
    const running = await frameworks[name]!(middleware)
    try {
      const ask = async () => (await fetch(running.url, { headers: { 'user-agent': agents.gpt } })).status
      expect(await ask()).toBe(200)
      while (events.length < 2) await Bun.sleep(1)
      expect([...new Set(problems.map(({ code }) => code))]).toEqual(['hook_failed'])
      await client.close()
      expect(await ask()).toBe(200)
    } finally {
      await running.stop()
    }
  })
})
