/** The guides "Browser and WebMCP" and "Node frameworks", followed literally: their code blocks run as they are. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createGateway } from '../../sdk/node.ts'
import type { Appliance } from '../support/binary.ts'
import { closeBrowser, withPage } from '../support/browser.ts'
import { run } from '../support/process.ts'
import {
  hostEnv,
  installedProject,
  type Keys,
  linkPackage,
  type Project,
  startWithKeys,
} from './sdk-appliance.ts'

let appliance: Appliance
let keys: Keys
let project: Project
beforeAll(async () => {
  ;({ appliance, keys } = await startWithKeys())
  project = await installedProject()
  linkPackage(project, 'express')
}, 120_000)
afterAll(async () => {
  await closeBrowser()
  project[Symbol.dispose]()
  await appliance.stop()
})

/** The code blocks of a page that the appliance serves, as its copy buttons give them. */
async function blocks(name: string): Promise<string[]> {
  const page = await (await fetch(`${appliance.url}/docs/${name}`)).text()
  const found = [...page.matchAll(/<pre tabindex="0">([\s\S]*?)<\/pre>\n<button[^>]*data-copy/g)]
  const entities: { [name: string]: string } = { lt: '<', gt: '>', quot: '"', amp: '&', '#x27': "'" }
  return found.map(([, html = '']) =>
    html.replace(/&([#\w]+);/g, (_, entity: string) => entities[entity] ?? '?'),
  )
}

/** Without SIGHTGLASS_URL: the guide has the reader's own address. */
async function started(text: string): Promise<{ url: string; [Symbol.dispose](): void }> {
  writeFileSync(project.dir.join('server.mjs'), text)
  const { SIGHTGLASS_URL: _, ...env } = hostEnv(appliance.url, keys)
  const child = run(['node', 'server.mjs'], { cwd: project.dir.path, env })
  const url = await child.line((line) => /^listening on (\S+)$/.exec(line)?.[1] ?? null, 10_000)
  return { url, [Symbol.dispose]: () => child.signal('SIGKILL') }
}

async function until(what: string, check: () => Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + 10_000
  while (!(await check())) {
    if (performance.now() > deadlineMs) throw new Error(`${what}: not within 10 s`)
    await Bun.sleep(50)
  }
}

async function types(): Promise<string[]> {
  const found: string[] = []
  const gateway = createGateway({ url: appliance.url, secretKey: keys.secretKey })
  for await (const { type, tool } of gateway.traces()) found.push(`${type} ${String(tool)}`)
  return found
}

test('Browser and WebMCP: both tools of its page are registered, and a call is an event', async () => {
  const [install, server = '', page = ''] = await blocks('browser')
  expect(install).toBe(`npm install express ${appliance.url}/sdk/sightglass-sdk.tgz`)
  mkdirSync(project.dir.join('public'), { recursive: true })
  writeFileSync(
    project.dir.join('public/index.html'),
    page.replace('YOUR_PUBLISHABLE_KEY', keys.publishableKey),
  )
  using child = await started(server)
  const { url } = child
  const headers = { authorization: `Bearer ${keys.secretKey}` }
  await withPage(
    url,
    async (visited) => {
      await until('tools', async () => {
        const { tools } = await (await fetch(`${appliance.url}/v1/tools?siteId=shop`, { headers })).json()
        return tools.length === 2
      })
      expect(await visited.webmcp.callTool('cart.add', { sku: 'a' })).toBe('added a')
      await until('the call', async () => (await types()).includes('tool.executed cart.add'))
    },
    { allow: [/^request to another host: GET \S+\/sdk\//, /favicon/, /404/] },
  )
}, 60_000)

test('Node frameworks: a request of an agent and a decision are events', async () => {
  const [, server = '', commands = ''] = await blocks('frameworks')
  using child = await started(server)
  const { url } = child
  const userAgent = /-A '([^']+)'/.exec(commands)![1]!
  const ask = (path: string) => fetch(url + path, { headers: { 'user-agent': userAgent } })
  expect(await (await ask('/')).json()).toMatchObject({ agent: { product: 'GPTBot' } })
  const denied = await ask('/drafts/one')
  expect([denied.status, await denied.text()]).toEqual([403, 'rule no-training'])
  await until('the events', async () => {
    const all = await types()
    return ['agent.requested', 'agent.detected', 'authz.evaluated'].every((type) =>
      all.includes(`${type} undefined`),
    )
  })
}, 60_000)
