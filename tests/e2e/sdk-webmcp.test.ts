/**
 * WebMCP of a real Chromium: a page with ten functions and two forms, an agent that lists and calls them, a relay and
 * the executable. The registry, its changes, calls, failures and aborts arrive, live.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Page } from 'playwright'
import {
  createGateway,
  createIntelExporter,
  createIntelSync,
  createRelayHandler,
  type IntelExporter,
} from '../../sdk/node.ts'
import type { Appliance } from '../support/binary.ts'
import { closeBrowser, withPage } from '../support/browser.ts'
import { startWithOwner, withOwner } from './dashboard-actions.ts'
import { type Keys, makeKeys } from './sdk-appliance.ts'

let appliance: Appliance
let keys: Keys
let exporter: IntelExporter
let shop: Bun.Server<undefined>
let isRelayDown = false
beforeAll(async () => {
  appliance = await startWithOwner()
  keys = await makeKeys(appliance)
  const { ingestKey, publishableKey } = keys
  exporter = createIntelExporter({ url: appliance.url, ingestKey, intervalMs: 50 })
  const sync = createIntelSync({ url: appliance.url, ingestKey, siteId: 'shop' })
  const relay = createRelayHandler({
    exporter,
    sync,
    publishableKey,
    siteId: 'shop',
    eventsPerMinute: 20_000,
  })
  shop = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    routes: {
      '/sdk/:name': ({ params }) =>
        new Response(Bun.file(join(import.meta.dir, '../../dist/client-package', params.name)), {
          headers: { 'content-type': 'text/javascript' },
        }),
      '/traces': (request, server) =>
        isRelayDown ? new Response('', { status: 500 }) : relay(request, server),
      '/found': new Response('<!doctype html><title>found</title><link rel="icon" href="data:,">', html),
      '/': new Response(pageText(publishableKey), html),
    },
  })
}, 120_000)
afterAll(async () => {
  await closeBrowser()
  await shop.stop(true)
  await exporter.close()
  await appliance.stop()
})

const html = { headers: { 'content-type': 'text/html' } }

/** The script comes first. The first function is registered before the client is there, the others after. */
function pageText(key: string): string {
  return `<!doctype html><title>shop</title><link rel="icon" href="data:,">
    <script src="/sdk/webmcp.js" data-key="${key}" data-site="shop" data-url="/traces"></script>
    <form toolname="search" tooldescription="Search the catalogue" toolautosubmit action="/found">
      <input name="q" required toolparamdescription="What to look for"><button>Go</button></form>
    <form toolname="newsletter" tooldescription="Subscribe">
      <input name="mail" type="email" required><button>Subscribe</button></form>
    <script>
      const { modelContext } = document
      const signals = window.signals = {}
      const tool = (name, execute) => {
        signals[name] = new AbortController()
        const inputSchema = { type: 'object', properties: { password: { type: 'string' }, n: { type: 'number' } } }
        const { signal } = signals[name]
        return modelContext.registerTool({ name, description: 'Does ' + name, inputSchema, execute }, { signal })
      }
      window.ready = Promise.all([
        tool('add', ({ n }) => ({ sum: n + 1 })),
        tool('slow', async () => { await new Promise((done) => setTimeout(done, 60)); return 'slow' }),
        tool('fails', async () => { throw new RangeError('card 4111 1111 1111 1111') }),
        tool('throws', () => { throw new TypeError('secret') }),
        tool('waits', (_, { signal }) => new Promise((_, no) => {
          signal.addEventListener('abort', () => no(signal.reason))
        })),
        ...[6, 7, 8, 9, 10].map((n) => tool('tool' + n, () => n)),
      ])
      document.forms[1].addEventListener('submit', (event) => {
        event.preventDefault()
        if (event.agentInvoked) event.respondWith(Promise.resolve({ subscribed: true }))
      })
    </script>`
}

interface SeenTool {
  name: string
  version: number
  enabled: boolean
  tool: { description: string; declarative?: boolean; inputSchema?: { properties?: object } }
}

async function registry(): Promise<SeenTool[]> {
  const headers = { authorization: `Bearer ${keys.secretKey}` }
  const answer = await fetch(`${appliance.url}/v1/tools?siteId=shop&limit=100`, { headers })
  return ((await answer.json()) as { tools: SeenTool[] }).tools
}

interface SeenCall {
  tool: string
  outcome: string
  error?: string
  durationMs: number
  sessionId: string
  agent: object
}

async function calls(): Promise<SeenCall[]> {
  const seenCalls: SeenCall[] = []
  const gateway = createGateway({ url: appliance.url, secretKey: keys.secretKey })
  for await (const event of gateway.traces({ type: 'tool.executed' })) seenCalls.push(event as never)
  return seenCalls.reverse()
}

/** Resolves with the time that it took, within the 5 s that a change may need. */
async function within5s(condition: string, check: () => Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + 5_000
  while (!(await check())) {
    if (performance.now() > deadlineMs) throw new Error(`${condition}: not within 5 s`)
    await Bun.sleep(50)
  }
}

interface Consumer {
  getTools(): Promise<{ name: string }[]>
  executeTool(tool: unknown, input: object, options: object): Promise<unknown>
}

/** The agent: a script of the page that uses the consumer's half of the API. */
const agent = (page: Page, name: string, input: object, abortMs = 0) =>
  page.evaluate(
    async ([name, input, abortMs]) => {
      const context = (document as unknown as { modelContext: Consumer }).modelContext
      const tools = await context.getTools()
      const controller = new AbortController()
      if (abortMs > 0) setTimeout(() => controller.abort(), abortMs)
      const tool = tools.find((candidate) => candidate.name === name)
      const { signal } = controller
      return context.executeTool(tool, input, { signal }).catch((error: Error) => `${error.name}`)
    },
    [name, input, abortMs] as const,
  )

const visit = <T>(look: (page: Page) => Promise<T>) =>
  withPage(
    shop.url.href,
    async (page) => {
      await page.evaluate('window.ready')
      return look(page)
    },
    { allow: [/WebMCP tool execution failed/, /500 \(Internal Server Error\)/] },
  )

test('twelve tools are registered with their schemas; calls, failures and aborts are one session', async () => {
  await visit(async (page) => {
    await within5s('registry', async () => (await registry()).length === 12)
    const tools = new Map((await registry()).map((tool) => [tool.name, tool]))
    expect(tools.get('search')).toMatchObject({
      version: 1,
      tool: { declarative: true, inputSchema: { properties: { q: { description: 'What to look for' } } } },
    })
    expect(tools.get('add')?.tool.inputSchema?.properties).toEqual({
      password: { type: 'string' },
      n: { type: 'number' },
    })
    expect((await page.webmcp.tools()).length).toBe(12)
    expect(await page.webmcp.callTool('add', { n: 1 })).toEqual({ sum: 2 })
    expect(await agent(page, 'add', { n: 41, password: 'hunter2' })).toBe('{"sum":42}')
    expect(await agent(page, 'slow', {})).toBe('slow')
    expect(await agent(page, 'fails', {})).toBe('UnknownError')
    expect(await agent(page, 'throws', {})).toBe('UnknownError')
    expect(await agent(page, 'waits', {}, 30)).toBe('AbortError')
    const subscribed = agent(page, 'newsletter', { mail: 'ada@example.com' })
    await page.locator('form[toolname=newsletter]:tool-form-active').waitFor()
    await page.getByRole('button', { name: 'Subscribe' }).click()
    expect(await subscribed).toBe('{"subscribed":true}')
    expect(await agent(page, 'newsletter', { wrong: 1 })).toBe('UnknownError')
    await within5s('calls', async () => (await calls()).length >= 8)
    await agent(page, 'search', { q: 'shoes' }).catch(() => {}) // navigates
    await page.waitForURL('**/found?q=shoes')
  })
  await within5s('the call that navigates', async () => (await calls()).length === 9)
  const seenCalls = await calls()
  expect(seenCalls.map(({ tool, outcome, error }) => [tool, outcome, error])).toEqual([
    ['add', 'success', undefined],
    ['add', 'success', undefined],
    ['slow', 'success', undefined],
    ['fails', 'error', 'RangeError'],
    ['throws', 'error', 'TypeError'],
    ['waits', 'aborted', undefined],
    ['newsletter', 'success', undefined],
    ['newsletter', 'error', 'InvalidInput'],
    ['search', 'success', undefined],
  ] as never)
  expect(new Set(seenCalls.map(({ sessionId }) => sessionId)).size).toBe(1)
  for (const secret of ['4111', 'hunter2', 'ada@', 'shoes'])
    expect(JSON.stringify(seenCalls)).not.toContain(secret)
  const slow = seenCalls[2]!
  expect(slow.durationMs).toBeGreaterThan(50)
  expect(slow.agent).toMatchObject({ class: 'webmcp', userAgent: expect.stringContaining('Chrome') })
}, 90_000)

test('a change, an unregistration and a new form are versions on WebMCP Tools, without a reload', async () => {
  await withOwner(`${appliance.url}/tools?site=shop`, async (dashboard) => {
    const row = (name: string) =>
      dashboard
        .locator('.data-table tbody tr')
        .filter({ has: dashboard.getByRole('link', { name, exact: true }) })
    await row('tool10').waitFor()
    await visit(async (page) => {
      const versionsBefore = new Map((await registry()).map(({ name, version }) => [name, version]))
      await page.waitForResponse('**/traces') // the registry of this visit, which equals that of the first
      expect(new Map((await registry()).map(({ name, version }) => [name, version]))).toEqual(versionsBefore)
      await page.evaluate(`signals.tool10.abort(); tool('tool11', () => 11)`)
      await page.evaluate(`document.forms[0].setAttribute('tooldescription', 'Search everything')`)
      await within5s('tool11 in registry', async () =>
        (await registry()).some(({ name }) => name === 'tool11'),
      )
      await within5s('tool11', async () => (await row('tool11').count()) === 1)
      await within5s('versions', async () => {
        const now = new Map((await registry()).map((tool) => [tool.name, tool]))
        return (
          now.get('search')?.tool.description === 'Search everything' && now.get('tool10')?.enabled === false
        )
      })
    })
  })
}, 90_000)

test('a relay that fails gets the registry and the calls when it is back', async () => {
  isRelayDown = true
  await visit(async (page) => {
    await page.evaluate(`tool('later', () => 1)`)
    const failed = page.waitForResponse((answer) => answer.status() === 500)
    expect(await agent(page, 'later', {})).toBe('1')
    await failed
    isRelayDown = false
    await within5s('the tool', async () => (await registry()).some(({ name }) => name === 'later'))
    await within5s('its call', async () => (await calls()).some(({ tool }) => tool === 'later'))
  })
}, 30_000)
