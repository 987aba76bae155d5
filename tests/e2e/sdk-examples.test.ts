/** Every example of the client package, started as its reader would and called as a browser and a crawler do. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { copyFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { createGateway } from '../../sdk/node.ts'
import type { Appliance } from '../support/binary.ts'
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
  for (const name of ['express', 'hono']) linkPackage(project, name)
}, 120_000)
afterAll(async () => {
  project[Symbol.dispose]()
  await appliance.stop()
})

function start(command: string[], example: string) {
  copyFileSync(join(import.meta.dir, '../..', example), project.dir.join(`example${extname(example)}`))
  return run(command, { cwd: project.dir.path, env: hostEnv(appliance.url, keys) })
}

/** Events that arrived, by id. */
async function stored(): Promise<Map<string, { [member: string]: unknown }>> {
  const events = new Map<string, { [member: string]: unknown }>()
  const gateway = createGateway({ url: appliance.url, secretKey: keys.secretKey })
  for await (const event of gateway.traces()) events.set(event.id, event)
  return events
}

const browserBody = (id: string): string =>
  JSON.stringify({
    publishableKey: keys.publishableKey,
    events: [
      {
        id,
        siteId: 'forged',
        sessionId: 's1',
        occurredAt: new Date().toISOString(),
        type: 'tool.executed',
        outcome: 'success',
        agent: { class: 'webmcp', trust: 'verified' },
      },
    ],
  })

test.each([
  ['sdk/examples/express.mjs', ['node', 'example.mjs']],
  ['sdk/examples/hono.ts', [process.execPath, 'example.ts']],
])(
  '%s',
  async (example, command) => {
    const host = start(command, example)
    const url = await host.line((line) => /^listening on (\S+)$/.exec(line)?.[1] ?? null, 10_000)
    expect(await (await fetch(url, { headers: { 'user-agent': 'ClaudeBot/1.0' } })).text()).toBe('hello')
    for (const userAgent of ['GPTBot/1.2', 'ChatGPT-User/1.0', 'ClaudeBot/1.0'])
      await (await fetch(url, { headers: { 'user-agent': userAgent } })).text()
    const post = (id: string, origin: string): Promise<Response> =>
      fetch(`${url}/traces`, {
        method: 'POST',
        body: browserBody(id),
        headers: { origin, 'content-type': 'text/plain', 'user-agent': 'Firefox/140' },
      })
    const answer = await post(`browser-${example}`, url)
    expect([answer.status, await answer.json()]).toEqual([202, { ok: true, accepted: 1 }])
    expect((await post(`forged-${example}`, 'https://evil.example')).status).toBe(403)
    host.signal('SIGTERM')
    expect(await host.exited).toBe(0)
    expect(host.stderr()).toBe('')
    const events = await stored()
    expect(events.get(`browser-${example}`)).toMatchObject({
      siteId: 'shop-acme',
      agent: { class: 'webmcp', trust: 'detected', userAgent: 'Firefox/140' },
    })
    expect(events.has(`forged-${example}`)).toBe(false)
    const detected = [...events.values()].filter(({ type }) => type === 'agent.detected')
    const visits = Map.groupBy(detected, ({ agent }) => (agent as { name: string }).name)
    expect([...visits.keys()].toSorted()).toEqual(['ChatGPT-User', 'ClaudeBot', 'GPTBot'])
    const sessions = [...visits.values()].map((visit) => new Set(visit.map(({ sessionId }) => sessionId)))
    expect(sessions.map(({ size }) => size)).toEqual([1, 1, 1]) // one story for each bot
    expect(new Set(sessions.flatMap((ids) => [...ids])).size).toBe(3) // and none shared
    expect(detected.find(({ agent }) => (agent as { name: string }).name === 'ClaudeBot')).toMatchObject({
      agent: { vendor: 'Anthropic', name: 'ClaudeBot' },
      metadata: { page: '/' },
    })
  },
  40_000,
)

test('sdk/examples/next-route.ts answers when the appliance has the events', async () => {
  // Next.js calls the exported functions with a Request and sends the Response: so does this server.
  const server = `
import { OPTIONS, POST } from './example.ts'
const route = (request) => (request.method === 'OPTIONS' ? OPTIONS : POST)(request)
const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: route })
console.log('listening on ' + server.url.origin)`
  await Bun.write(project.dir.join('next.ts'), server)
  const host = start([process.execPath, 'next.ts'], 'sdk/examples/next-route.ts')
  const url = await host.line((line) => /^listening on (\S+)$/.exec(line)?.[1] ?? null, 10_000)
  expect((await fetch(url, { method: 'OPTIONS', headers: { origin: url } })).status).toBe(204)
  const answer = await fetch(url, {
    method: 'POST',
    body: browserBody('browser-next'),
    headers: { origin: url },
  })
  expect(answer.status).toBe(202)
  host.signal('SIGKILL') // the answer was the promise: nothing may be left to do
  await host.exited
  expect((await stored()).get('browser-next')).toMatchObject({ siteId: 'shop-acme' })
}, 90_000)

test('sdk/examples/plain-fetch.mjs', async () => {
  const host = start(['node', 'example.mjs'], 'sdk/examples/plain-fetch.mjs')
  expect(await host.exited).toBe(0)
  expect(JSON.parse(host.stdout())).toEqual({ ok: true, accepted: 1, deduped: 0 })
}, 90_000)
