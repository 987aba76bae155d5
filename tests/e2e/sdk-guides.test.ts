/** The guides for clients in JavaScript (pages, Node frameworks, moving from another vendor), followed literally. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { createGateway } from '../../sdk/node.ts'
import type { Appliance } from '../support/binary.ts'
import { closeBrowser, withPage } from '../support/browser.ts'
import { until } from '../support/until.ts'
import { startWithOwner } from './dashboard-actions.ts'
import { output, readGuide, save, shell } from './guide-reader.ts'
import { installedProject, type Keys, linkPackage, makeKeys, type Project } from './sdk-appliance.ts'

setDefaultTimeout(60_000)

let appliance: Appliance
let keys: Keys
let project: Project
beforeAll(async () => {
  appliance = await startWithOwner()
  keys = await makeKeys(appliance)
  project = await installedProject()
  linkPackage(project, 'express')
}, 120_000)
afterAll(async () => {
  await closeBrowser()
  project[Symbol.dispose]()
  await appliance.stop()
})

const env = { PATH: process.env['PATH'] ?? '', PORT: '0' }

/** Its packages are installed already, because the registry of npm is not part of the test. */
function expectInstall(block: string | undefined, packages = ''): void {
  expect(block).toBe(`npm install ${packages}${appliance.url}/sdk/sightglass-sdk.tgz`)
}

/** The command of the guide, on a port that the system picks. */
async function started(command: string): Promise<{ url: string; [Symbol.dispose](): void }> {
  const child = shell(command, project.dir.path, env)
  const url = await child.line((line) => /^listening on (\S+)$/.exec(line)?.[1] ?? null, 20_000)
  return { url, [Symbol.dispose]: () => child.signal('SIGTERM') } // SIGKILL would end the shell alone
}

async function types(): Promise<string[]> {
  const eventTypes: string[] = []
  const gateway = createGateway({ url: appliance.url, secretKey: keys.secretKey })
  for await (const { type, tool } of gateway.traces()) eventTypes.push(`${type} ${String(tool)}`)
  return eventTypes
}

const headers = (key: string) => ({ authorization: `Bearer ${key}`, 'content-type': 'application/json' })

test('Browser and WebMCP: both tools of its page are registered, and a call is an event', async () => {
  const { blocks } = await readGuide(appliance, 'browser')
  const [install, server = '', html = '', start = ''] = blocks
  expectInstall(install, 'express ')
  save(project.dir, 'server.mjs', server)
  save(project.dir, 'public/index.html', html)
  using child = await started(start)
  await withPage(
    child.url,
    async (page) => {
      await until(async () => {
        const answer = await fetch(`${appliance.url}/v1/tools?siteId=shop`, {
          headers: headers(keys.secretKey),
        })
        return ((await answer.json()) as { tools: unknown[] }).tools.length === 2
      })
      expect(await page.webmcp.callTool('cart.add', { sku: 'a' })).toBe('added a')
      await until(async () => (await types()).includes('tool.executed cart.add'))
    },
    { allow: [/^request to another host: GET \S+\/sdk\//, /favicon/, /404/] },
  )
})

test('Node frameworks: a request by an agent and a decision are events', async () => {
  const { blocks } = await readGuide(appliance, 'frameworks')
  const [install, server = '', start = '', ask = ''] = blocks
  expectInstall(install, 'express ')
  save(project.dir, 'server.mjs', server)
  using child = await started(start)
  const command = ask.replace('http://127.0.0.1:3000', child.url)
  const answer = JSON.parse(await output(command, project.dir.path, env)) as unknown
  expect(answer).toMatchObject({ agent: { product: 'GPTBot' } })
  const draft = command.replace(`${child.url}/`, `${child.url}/drafts/one`)
  expect(await output(draft, project.dir.path, env)).toBe('rule no-training')
  await until(async () => {
    const eventTypes = await types()
    return ['agent.requested', 'agent.detected', 'authz.evaluated'].every((type) =>
      eventTypes.includes(`${type} undefined`),
    )
  })
})

test('Node frameworks: with evidence, a request has a verdict', async () => {
  const { blocks } = await readGuide(appliance, 'frameworks')
  const [, server = '', start = '', ask = ''] = blocks
  const [imports, , ...lines] = blocks.find((block) => block.includes('loadEvidence'))!.split('\n')
  const middlewareLine = 'app.use(sightglass(client)) // before the routes'
  expect(server).toContain(middlewareLine)
  save(project.dir, 'server.mjs', `${imports}\n${server.replace(middlewareLine, lines.join('\n'))}`)
  using child = await started(start)
  const command = ask.replace('http://127.0.0.1:3000', child.url)
  // The address of this machine proves and contradicts nothing.
  await until(async () => {
    const { agent } = JSON.parse(await output(command, project.dir.path, env)) as {
      agent: { verdict: string }
    }
    return agent.verdict === 'unverifiable'
  })
})

/** Next.js is too large for the tests: its `next start` calls `register` in a Node.js server, as here. */
const nextHost = `import { createServer } from 'node:http'
process.env.NEXT_RUNTIME = 'nodejs'
await (await import('./instrumentation.js')).register()
const { proxy, config } = await import('./proxy.js')
if (config.matcher !== '/drafts/:path*') throw new Error(config.matcher)
const server = createServer(async ({ url, headers }, response) => {
  const answer = url.startsWith('/drafts/') ? proxy(new Request('http://next' + url, { headers })) : undefined
  response.writeHead(answer?.status ?? 200).end(answer ? await answer.text() : 'page')
}).listen(0, '127.0.0.1', () => console.log('listening on http://127.0.0.1:' + server.address().port))`

test('Node frameworks: the files for Next.js record requests and decide', async () => {
  const { blocks } = await readGuide(appliance, 'frameworks')
  const blockWith = (text: string) => blocks.find((block) => block.includes(text)) ?? ''
  save(project.dir, 'sightglass.js', blockWith('middleware.watchHttp()'))
  save(project.dir, 'instrumentation.js', blockWith('NEXT_RUNTIME'))
  save(project.dir, 'proxy.js', blockWith('export function proxy'))
  save(project.dir, 'next.mjs', nextHost)
  using child = await started(blocks[2]!.replace('server.mjs', 'next.mjs'))
  const ask = (path: string) => fetch(child.url + path, { headers: { 'user-agent': 'GPTBot/1.2' } })
  expect(await (await ask('/next')).text()).toBe('page')
  const denied = await ask('/drafts/next')
  expect([denied.status, await denied.text()]).toEqual([403, 'rule no-training'])
  const gateway = createGateway({ url: appliance.url, secretKey: keys.secretKey })
  await until(async () => {
    const pages: unknown[] = []
    for await (const { metadata } of gateway.traces({ type: 'agent.requested' }))
      pages.push((metadata as { page?: unknown }).page)
    return pages.includes('/next') && pages.includes('/drafts/next')
  })
})

/** As other clients of this protocol send: one event per request, beside it what they add. */
async function sendAsOtherClient(settings: string, event: object): Promise<unknown> {
  const read = (name: string) => new RegExp(`^${name} +(\\S+)$`, 'm').exec(settings)![1]!
  const body = JSON.stringify({ publishableKey: read('publishableKey'), events: [event], sentAt: 1 })
  const url = `${read('url')}/v1/sdk/events`
  return (await fetch(url, { method: 'POST', headers: headers(read('ingestKey')), body })).json()
}

const event = (id: string, fields: object = {}) => ({
  id,
  siteId: 'old-shop',
  sessionId: 's',
  occurredAt: '2026-06-23T12:00:00Z',
  type: 'tool.executed',
  outcome: 'success',
  ...fields,
})

test('Moving: the other client, ours, the check, the history and the totals', async () => {
  const { blocks, commands } = await readGuide(appliance, 'moving')
  const [settings = '', install, first = '', post = '', read = '', history = '', copy = '', total = ''] =
    blocks
  const dir = project.dir.path
  expect(await sendAsOtherClient(settings, event('other-1', { vendorField: [1, { a: null }] }))).toEqual({
    ok: true,
    accepted: 1,
    deduped: 0,
  })
  expectInstall(install)
  save(project.dir, 'first.mjs', first)
  expect(await output(commands[0]!, dir, env)).toBe('')
  expect(await types()).toContain('agent.detected undefined')
  const tools = await fetch(`${appliance.url}/v1/tools?siteId=shop`, { headers: headers(keys.secretKey) })
  expect(JSON.stringify(await tools.json())).toContain('"tokens":120')

  expect(JSON.parse(await output(post, dir, env))).toEqual({ ok: true, accepted: 1, deduped: 0 })
  expect(JSON.parse(await output(read, dir, env))).toMatchObject({ id: 'move-1', tool: 'search' })

  // The old service speaks the same protocol: another organization takes its part.
  await appliance.cli('org', 'create', '--name', 'Old')
  const key = async (kind: string): Promise<string> => {
    const keyResult = await appliance.cli(
      'key',
      'create',
      '--kind',
      kind,
      '--org',
      'old',
      '--label',
      'old',
      '--json',
    )
    return (JSON.parse(keyResult.stdout) as { key: string }).key
  }
  const events = Array.from({ length: 450 }, (_, n) => event(`old-${n}`))
  const response = await fetch(`${appliance.url}/v1/sdk/events`, {
    method: 'POST',
    headers: headers(await key('ingest')),
    body: JSON.stringify({ events }),
  })
  expect(response.status).toBe(202)
  save(project.dir, 'history.mjs', history)
  const command = copy.replace(
    'https://old.example OLD_SECRET_KEY',
    `${appliance.url} ${await key('secret')}`,
  )
  const sums = async () => (await output(command, dir, env)).trim()
  expect(await sums()).toBe('{ accepted: 450, deduped: 0, rejected: 0 }')
  expect(await sums()).toBe('{ accepted: 0, deduped: 450, rejected: 0 }')
  const { byType } = JSON.parse(await output(total, dir, env)) as { byType: Record<string, number> }
  expect(byType['tool.executed']).toBeGreaterThanOrEqual(452)
})
