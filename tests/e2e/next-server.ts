/**
 * `bun tests/e2e/next-server.ts --full`: installs the current Next.js from npm (329 MB), follows the guide and
 * compares the events of the 30 requests with those of another server. Without --full it says what it would do.
 */
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { CompleteEvent } from '../../sdk/client/event.ts'
import { sightglass } from '../../sdk/middleware/middleware.ts'
import { createGateway, createIntelExporter, init } from '../../sdk/node.ts'
import type { Appliance } from '../support/binary.ts'
import { comparable, gptBot, sendAll } from '../support/framework-requests.ts'
import { nodeFrameworks } from '../support/node-frameworks.ts'
import { run } from '../support/process.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'
import { hostEnv, type Keys, startWithKeys } from './sdk-appliance.ts'

const isSkipped = ({ url }: { url: string }): boolean => url.endsWith('/skipped')
const route = `
import { agentOf, judgedAgentOf } from '@sightglass/sdk/middleware'
async function handler(request) {
  const [, name, status] = new URL(request.url).pathname.split('/')
  if (name === 'throws') throw new Error('handler')
  if (name === 'slow') await new Promise((resolve) => setTimeout(resolve, 20))
  const code = name === 'status' ? Number(status) : 200
  const agent = agentOf(request)
  if (agent !== (await judgedAgentOf(request))) throw new Error('two agents')
  const body = JSON.stringify({ agent })
  if (code === 204) return new Response(null, { status: code })
  const headers = { 'content-type': 'application/json', 'content-length': String(body.length) }
  return new Response(request.method === 'HEAD' ? null : body, { status: code, headers })
}
export { handler as GET, handler as HEAD, handler as POST, handler as PUT }
`
const page = `
HEADERS
import { agentOf } from '@sightglass/sdk/middleware'
export default async function Page() {
  return <p>{'product: ' + agentOf(await headers())?.product}</p>
}
`.replace('HEADERS', `import { headers } from ${JSON.stringify('next/headers')}`)
const layout = `export default function Layout({ children }) { return <html><body>{children}</body></html> }`

function expectEqual(label: string, actual: unknown[], expected: unknown[]): void {
  const count = Math.max(actual.length, expected.length)
  const wrong = Array.from({ length: count }, (_, index) => index).filter(
    (index) => !isDeepStrictEqual(actual[index], expected[index]),
  )
  for (const index of wrong)
    console.log(
      `${label} ${index}: ${JSON.stringify(actual[index])}\n  expected ${JSON.stringify(expected[index])}`,
    )
  if (wrong.length > 0) throw new Error(`${label}: ${wrong.length} of ${count} differ`)
  console.log(`${label}: all ${count} as expected`)
}

async function step(name: string, dir: TempDir, command: string[]): Promise<void> {
  const startedMs = performance.now()
  const env = { PATH: process.env.PATH ?? '', HOME: dir.path, NEXT_TELEMETRY_DISABLED: '1' }
  const child = run(command, { cwd: dir.path, env })
  if ((await child.exited) !== 0) throw new Error(`${name}: ${child.stdout()}${child.stderr()}`)
  console.log(`${name}: ${((performance.now() - startedMs) / 1_000).toFixed(1)} s`)
}

/** An application with the files of the guide, a route handler for the requests, and a page. */
async function built({ url }: Appliance): Promise<TempDir> {
  const dir = tempDir('next')
  writeFileSync(dir.join('package.json'), '{"name":"shop","private":true,"type":"module"}\n')
  const packages = ['next@latest', 'react@latest', 'react-dom@latest', `${url}/sdk/sightglass-sdk.tgz`]
  await step('npm install', dir, ['npm', 'install', '--no-audit', '--no-fund', ...packages])
  const guide = readFileSync(join(import.meta.dir, '../../server/guide/frameworks.md'), 'utf8')
  const blocks = guide.replaceAll('@address', url).split(/^```\n/m)
  const block = (text: string): string => blocks.find((candidate) => candidate.includes(text))!
  const setUp = block('watchHttp()').replace("url.startsWith('/_next/')", "url.endsWith('/skipped')")
  const files = {
    'sightglass.js': setUp,
    'instrumentation.js': block('register()'),
    'proxy.js': block('proxy('),
  }
  mkdirSync(dir.join('app/[[...path]]'), { recursive: true })
  mkdirSync(dir.join('app/drafts/[name]'), { recursive: true })
  for (const [name, text] of Object.entries({
    ...files,
    'app/[[...path]]/route.js': route,
    'app/drafts/[name]/page.js': page,
    'app/layout.js': layout,
  }))
    writeFileSync(dir.join(name), text)
  await step('next build', dir, ['node', 'node_modules/next/dist/bin/next', 'build'])
  return dir
}

/** The events of a site, oldest first. */
async function stored({ url }: Appliance, keys: Keys, siteId: string): Promise<CompleteEvent[]> {
  const events: CompleteEvent[] = []
  for await (const event of createGateway({ url, secretKey: keys.secretKey }).traces({ siteId }))
    events.unshift(event as unknown as CompleteEvent)
  return events
}

/**
 * Both events of a request have the same time, so their order is not compared. Next.js removes the content-length of
 * route handlers, so the bytes are not.
 */
function sorted(events: CompleteEvent[]): string[] {
  const plain = events.map(({ siteId: _, receivedAt: __, ...event }) => {
    // The session of GPTBot begins with a request that the other server did not get.
    const { bytes: ___, ...metadata } = event.metadata ?? {}
    if (event.type === 'agent.detected') Object.assign(metadata, { page: '/', host: 'shop.example' })
    return { ...event, metadata } as CompleteEvent
  })
  return comparable(plain)
    .map((event) => JSON.stringify(Object.entries(event as object).sort()))
    .sort()
}

const doNotWait = (): (() => number) => {
  let count = 0
  return () => count++
}

/** The same requests to a server in this process. */
async function reference({ url }: Appliance, keys: Keys): Promise<string[]> {
  const exporters = [createIntelExporter({ url, ingestKey: keys.ingestKey })]
  const client = init({ publishableKey: keys.publishableKey, siteId: 'reference', exporters })
  const running = await nodeFrameworks['express']!(sightglass<{ url: string }>(client, { skip: isSkipped }))
  const answers = await sendAll(running, doNotWait())
  await running.stop()
  await client.close()
  return answers
}

/** Sends requests until Next.js has loaded the instrumentation. Returns how many were sent. */
async function untilSeen(url: string): Promise<number> {
  for (let count = 1; count < 500; count++) {
    const answered = await fetch(`${url}/early`, { headers: { 'user-agent': gptBot } })
    if ((await answered.text()).includes('GPTBot')) return count
    await Bun.sleep(20)
  }
  throw new Error('no request was seen')
}

/** Without SIGHTGLASS_URL: the guide has the reader's own address. */
function started(dir: TempDir, keys: Keys) {
  const { SIGHTGLASS_URL: _, ...env } = hostEnv('', keys)
  const command = ['node', 'node_modules/next/dist/bin/next', 'start', '-p', '0', '-H', '127.0.0.1']
  return run(command, { cwd: dir.path, env: { ...env, NEXT_TELEMETRY_DISABLED: '1' } })
}

/** Starts it again until the spool is empty: Next.js does not wait for the last events. */
async function sentByNextStart(dir: TempDir, keys: Keys): Promise<void> {
  const spooled = (): number =>
    readdirSync(dir.path)
      .filter((name) => name.startsWith('sightglass.spool'))
      .reduce((sum, name) => sum + statSync(dir.join(name)).size, 0)
  console.log(`spooled when it stopped: ${spooled()} bytes`)
  const child = started(dir, keys)
  for (const deadlineMs = Date.now() + 30_000; spooled() > 200 && Date.now() < deadlineMs;)
    await Bun.sleep(100)
  child.signal('SIGTERM')
  await child.exited
}

async function main(): Promise<void> {
  const { appliance, keys } = await startWithKeys()
  const dir = await built(appliance)
  const answers = await reference(appliance, keys)
  const child = started(dir, keys)
  let earlyCount = 0
  try {
    const url = await child.line((line) => /Local: +(http:\S+)/.exec(line)?.[1] ?? null, 30_000)
    earlyCount = await untilSeen(url)
    expectEqual('responses', await sendAll({ url, stop: () => {} }, doNotWait()), answers)
    const ask = (path: string, agent: string) => fetch(url + path, { headers: { 'user-agent': agent } })
    const denied = await ask('/drafts/one', gptBot)
    expectEqual('proxy.js', [denied.status, await denied.text()], [403, 'rule no-training'])
    const text = await (await ask('/drafts/one', 'ClaudeBot/1.0')).text()
    const otherHtml = await (await ask('/drafts/one', 'PerplexityBot/1.0')).text()
    expectEqual(
      'pages',
      [/product: \w+/.exec(text)?.[0], /product: \w+/.exec(otherHtml)?.[0]],
      [undefined, 'product: PerplexityBot'],
    )
  } finally {
    child.signal('SIGTERM')
    await child.exited
  }
  await sentByNextStart(dir, keys)
  const events = await stored(appliance, keys, 'shop')
  const pageOf = ({ metadata }: CompleteEvent): unknown => metadata?.page
  const isDraft = (event: CompleteEvent): boolean => pageOf(event) === '/drafts/one'
  const early = events.filter((event) => pageOf(event) === '/early' && event.type === 'agent.requested')
  expectEqual('requests while it starts', [early.length], [earlyCount])
  console.log(`without a duration: ${early.filter(({ durationMs }) => durationMs === undefined).length}`)
  const requests = events.filter((event) => !isDraft(event) && !early.includes(event))
  expectEqual('events', sorted(requests), sorted(await stored(appliance, keys, 'reference')))
  const [evaluated, requested] = ['authz.evaluated', 'agent.requested'].map((type) =>
    events.find((event) => event.type === type && isDraft(event)),
  )
  expectEqual('session of the decision', [evaluated?.sessionId], [requested?.sessionId])
  expectEqual('status of a refused page', [requested?.metadata?.['status']], [403])
  dir.remove()
  await appliance.stop()
}

if (process.argv.includes('--full')) await main()
else console.log('--full installs Next.js from npm, builds an application and sends it 30 requests')
