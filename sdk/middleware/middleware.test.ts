/** One list of 30 requests gives the same responses and the same events in every framework, each as a real server. */
import { describe, expect, test } from 'bun:test'
import { Elysia } from 'elysia'
import { Hono } from 'hono'
import type { CompleteEvent } from '../client/event.ts'
import type { Problem } from '../client/problem.ts'
import { init } from '../node.ts'
import { publishableKey } from '../../tests/support/fake-appliance.ts'
import {
  answer,
  comparable,
  gptBot,
  headersOf,
  type Running,
  sendAll,
  sentRequests,
} from '../../tests/support/framework-requests.ts'
import { type Frameworks, nodeFrameworks } from '../../tests/support/node-frameworks.ts'
import { type MiddlewareOptions, sightglass } from './middleware.ts'

const fetchAnswer = async (request: Request): Promise<Response> => {
  const { pathname, search } = new URL(request.url)
  const { status, body } = await answer(pathname + search, request)
  const headers = status === 204 ? {} : headersOf(body)
  const isBare = status === 204 || request.method === 'HEAD'
  return new Response(isBare ? null : pathname === '/late' ? failing(body) : body, { status, headers })
}

/** A body that fails after the headers and its first bytes. */
function failing(body: string): ReadableStream {
  let isSent = false
  return new ReadableStream({
    pull(to) {
      if (isSent) to.error(new Error('after the response'))
      else to.enqueue(new TextEncoder().encode(body))
      isSent = true
    },
  })
}

function serve(
  fetch: (request: Request, server: Bun.Server<undefined>) => Response | Promise<Response>,
): Running {
  const error = (): Response => new Response('', { status: 500 })
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch, error })
  return { url: server.url.origin, stop: () => server.stop(true) }
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

const frameworks: Frameworks = { ...nodeFrameworks, ...onFetch }

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

const reference = collected()
const bare = serve(reference.middleware.fetch((request) => fetchAnswer(request)))
const expected = {
  answers: await sendAll(bare, () => reference.events.length),
  events: comparable(reference.events),
}
await bare.stop()

test('the events of the list are those of its agents, with a start of each session', () => {
  expect(sentRequests.length).toBe(30)
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
      expect(await sendAll(running, () => events.length)).toEqual(expected.answers)
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
      const ask = async () => (await fetch(running.url, { headers: { 'user-agent': gptBot } })).status
      expect(await ask()).toBe(200)
      while (events.length < 2) await Bun.sleep(1)
      expect([...new Set(problems.map(({ code }) => code))]).toEqual(['hook_failed'])
      await client.close()
      expect(await ask()).toBe(200)
    } finally {
      await running.stop()
    }
  })

  // On Bun these two have no record of the status that was sent; tests/e2e/sdk-frameworks.test.ts has them on Node.js.
  if (name === 'express' || name === 'node:http') return

  test('a handler that fails after the response does not change what is reported', async () => {
    const { events, problems, middleware } = collected()
    const running = await frameworks[name]!(middleware)
    try {
      const ask = (path: string) => fetch(running.url + path, { headers: { 'user-agent': gptBot } })
      await ask('/late').catch(() => {}) // Bun closes the connection when a body fails
      expect((await ask('/')).status).toBe(200)
      while (events.length < 3) await Bun.sleep(1)
      expect(events.map(({ outcome, metadata }) => [outcome, metadata?.['status'] ?? null])).toEqual([
        ['success', null],
        ['success', 200],
        ['success', 200],
      ])
      expect(problems).toEqual([])
    } finally {
      await running.stop()
    }
  })
})
