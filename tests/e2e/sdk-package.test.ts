/** The package as npm delivers it: small, typed, and the README's program works in it as pasted. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createContext, runInContext } from 'node:vm'
import type { Appliance } from '../support/binary.ts'
import { closeBrowser } from '../support/browser.ts'
import { run } from '../support/process.ts'
import { startWithOwner, withOwner } from './dashboard-actions.ts'
import {
  builtPackage,
  hostEnv,
  installedProject,
  type Keys,
  type Project,
  makeKeys,
  storedIds,
} from './sdk-appliance.ts'

let appliance: Appliance
let keys: Keys
let project: Project
let packageDir: string
beforeAll(async () => {
  appliance = await startWithOwner()
  keys = await makeKeys(appliance)
  packageDir = await builtPackage()
  project = await installedProject()
}, 120_000)
afterAll(async () => {
  await closeBrowser()
  project[Symbol.dispose]()
  await appliance.stop()
})

const root = join(import.meta.dir, '../..')
const readme = readFileSync(join(root, 'sdk/README.md'), 'utf8')
const snippets = [...readme.matchAll(/```js\n([\s\S]*?)```/g)].map((match) => match[1] ?? '')

async function runProgram(name: string, command: string[], text: string): Promise<string> {
  writeFileSync(project.dir.join(name), text)
  const child = run([...command, name], { cwd: project.dir.path, env: hostEnv(appliance.url, keys) })
  const code = await child.exited
  expect({ code, stderr: child.stderr() }).toEqual({ code: 0, stderr: '' })
  return child.stdout()
}

test('the tarball is under 90 KB, readable, without dependencies, and every file of the exports map is in it', () => {
  // Code to be read (names and lines as written) needs more bytes than the 30 KB of minified code did; what a bundler
  // makes of it is held below.
  expect(project.tarballBytes).toBeLessThan(90_000)
  const installed = project.dir.join('node_modules/@sightglass/sdk')
  const manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as {
    [name: string]: unknown
  }
  expect(Object.keys(manifest).filter((name) => /ependencies/.test(name))).toEqual([])
  expect(manifest).toMatchObject({ name: '@sightglass/sdk', type: 'module', engines: { node: '>=18' } })
  const targets = [...JSON.stringify(manifest['exports']).matchAll(/"\.\/([^"]+\.(?:js|d\.ts))"/g)]
  expect(targets.length).toBeGreaterThan(10)
  for (const target of targets) readFileSync(join(installed, target[1] ?? ''))
  for (const name of ['LICENSE', 'NOTICE', 'README.md']) readFileSync(join(installed, name))
})

test.each([
  ['node.js', 24_500], // the relay reports signatures, so it has the parser of their headers
  ['edge.js', 23_500],
  ['browser/browser.js', 8_000],
])('%s is at most %i bytes in a bundle, minified and compressed', async (entry, bytesMax) => {
  const built = await Bun.build({
    entrypoints: [join(packageDir, entry)],
    target: entry.startsWith('browser') ? 'browser' : 'node',
    minify: true,
  })
  const bytes = Bun.gzipSync(await built.outputs[0]!.text(), { level: 9 }).length
  expect(bytes).toBeLessThanOrEqual(bytesMax)
})

test('a stack trace names our functions: the code is not minified', () => {
  const text = readFileSync(join(packageDir, 'node.js'), 'utf8')
  expect(text.split('\n').length).toBeGreaterThan(200)
  expect(text).toContain('function init(options)')
})

test.each([
  ['Node.js', ['node']],
  ['Bun', [process.execPath]],
])(
  'the README’s first program, pasted as it is, under %s: the event is on the Logs page',
  async (name, command) => {
    const countBefore = (await storedIds(appliance.url, keys.secretKey)).length
    await runProgram(`readme-${name.slice(0, 3)}.mjs`, command, snippets[0] ?? '')
    expect((await storedIds(appliance.url, keys.secretKey)).length).toBe(countBefore + 1)
    await withOwner(`${appliance.url}/logs`, async (page) => {
      const rows = page
        .locator('.event-row')
        .filter({ hasText: 'agent.detected' })
        .filter({ hasText: 'OpenAI' })
      await rows.nth(countBefore).waitFor({ timeout: 10_000 })
    })
  },
  60_000,
)

test('the README’s other programs name only what the package has', async () => {
  const names = [
    ...snippets
      .join('\n')
      .matchAll(
        /\b(create\w+|captureWebMcp|verifyWebhook|loadEvidence|judgedAgentOf|verifySignature|sightglass|decide|agentOf|init|detectAgent)\(/g,
      ),
  ].map((m) => m[1])
  const entries = await import(join(packageDir, 'node.js'))
  const browser = await import(join(packageDir, 'browser/browser.js'))
  const middleware = await import(join(packageDir, 'middleware/middleware.js'))
  const signature = await import(join(packageDir, 'judge/signature.js'))
  expect(names.length).toBeGreaterThan(8)
  for (const name of new Set(names)) {
    const exportTypes = [entries, browser, middleware, signature].map((module) => typeof module[name ?? ''])
    expect([name, exportTypes.includes('function')]).toEqual([name, true])
  }
})

test('a process that just ends has sent its events; one that is told to stop keeps them in its spool', async () => {
  const program = (statements: string): string => `
import { createIntelExporter, init } from '@sightglass/sdk'
const { env } = process
const settings = { url: env.SIGHTGLASS_URL, ingestKey: env.SIGHTGLASS_INGEST_KEY }
const exporter = createIntelExporter({ ...settings, intervalMs: 60_000, spool: 'spool/events' })
const ids = { siteId: 'shop', sessionId: 's' }
const client = init({ publishableKey: env.SIGHTGLASS_PUBLISHABLE_KEY, ...ids, exporters: [exporter] })
${statements}`
  await runProgram('ends.mjs', ['node'], program(`client.trace({ type: 'agent.detected', id: 'ends' })`))
  expect(await storedIds(appliance.url, keys.secretKey)).toContain('ends')
  for (const [index, command] of [['node'], [process.execPath]].entries()) {
    const exits = program(`client.trace({ type: 'agent.detected', id: 'exits-${index}' }); process.exit(0)`)
    await runProgram('exits.mjs', command, exits)
    expect(await storedIds(appliance.url, keys.secretKey)).not.toContain(`exits-${index}`)
    await runProgram('next.mjs', command, program(''))
    expect(await storedIds(appliance.url, keys.secretKey)).toContain(`exits-${index}`)
  }
}, 90_000)

test('Node.js 18 has no global crypto: ids, gzip and webhooks do without', async () => {
  const text = `
import { createIntelExporter, init, verifyWebhook } from '@sightglass/sdk'
import { createHmac } from 'node:crypto'
if (globalThis.crypto !== undefined) throw new Error('this is not what it should try')
const { env } = process
const settings = { url: env.SIGHTGLASS_URL, ingestKey: env.SIGHTGLASS_INGEST_KEY, gzip: true }
const exporter = createIntelExporter(settings)
const ids = { siteId: 'old', sessionId: 's' }
const client = init({ publishableKey: env.SIGHTGLASS_PUBLISHABLE_KEY, ...ids, exporters: [exporter] })
for (let index = 0; index < 20; index++) client.trace({ type: 'agent.detected', metadata: { page: '/' + index } })
await client.close()
const seconds = Math.floor(Date.now() / 1000)
const signature = createHmac('sha256', 'key').update('wh_1.' + seconds + '.{}').digest('base64')
const headers = { 'webhook-id': 'wh_1', 'webhook-timestamp': String(seconds), 'webhook-signature': 'v1,' + signature }
await verifyWebhook(headers, '{}', 'whsec_' + Buffer.from('key').toString('base64'))
process.stdout.write(JSON.stringify(exporter.stats().accepted))`
  expect(await runProgram('old.mjs', ['node', '--no-experimental-global-webcrypto'], text)).toBe('20')
})

test.each(['nodenext', 'bundler'])(
  'its types hold in a strict project with module resolution %s',
  async (resolution) => {
    const config = {
      compilerOptions: {
        strict: true,
        exactOptionalPropertyTypes: true,
        noEmit: true,
        types: [],
        target: 'es2022',
        module: resolution === 'bundler' ? 'esnext' : resolution,
        moduleResolution: resolution,
        lib: ['es2022', 'dom'],
        skipLibCheck: false,
      },
      files: ['typed.ts'],
    }
    writeFileSync(project.dir.join('tsconfig.json'), JSON.stringify(config))
    const text = `
import { createGateway, createIntelExporter, createIntelSync, createNodeRelay } from '@sightglass/sdk'
import { init, type Problem } from '@sightglass/sdk'
import { createBrowserExporter } from '@sightglass/sdk/browser'
import { createRelayHandler } from '@sightglass/sdk/relay'
import { detectAgent } from '@sightglass/sdk/agents'
import { verifyWebhook } from '@sightglass/sdk/webhook'
import { decide, judgedAgentOf, loadEvidence, sightglass } from '@sightglass/sdk/middleware'
import { createKeyring, verifySignature } from '@sightglass/sdk/signature'
const exporter = createIntelExporter({ url: 'http://x', ingestKey: 'k', onError: (problem: Problem) => problem.code })
const client = init({ publishableKey: 'k', exporters: [exporter, createBrowserExporter({ url: '/t' })] })
client.trace({ type: 'custom.kind', agent: detectAgent('x'), anything: 1 })
const dropped: number = exporter.stats().dropped
const pushed: Promise<number> = createIntelSync({ url: 'u', ingestKey: 'k', siteId: 's' }).pushTools([{ name: 'a' }])
const answer: Promise<Response> = createRelayHandler({ exporter, publishableKey: 'k' })(new Request('http://x'))
const node: (request: never, response: never) => Promise<void> = createNodeRelay({ exporter, publishableKey: 'k' })
for await (const event of createGateway({ url: 'u', secretKey: 'k' }).traces()) event.id.length
const sequence: unknown = (await verifyWebhook({}, '', '')).data['sequence']
const stop: () => void = sightglass(client, { evidence: loadEvidence({ url: 'u' }), origins: ['u'] }).watchHttp()
const verdict: string | undefined = (await judgedAgentOf(new Request('http://x')))?.verdict
const keyring = await createKeyring([{ operator: 'o', keys: [] }])
const { state } = await verifySignature(new Request('http://x'), { keyring })
decide({}, { rules: [{ id: 'r', decision: 'deny', verdict: 'contradicted' }] })
// @ts-expect-error an event needs a type
client.trace({})
// @ts-expect-error a score is a number
createIntelSync({ url: 'u', ingestKey: 'k', siteId: 's' }).pushMemory({}, 'high')
export { answer, dropped, node, pushed, sequence, state, stop, verdict }`
    writeFileSync(project.dir.join('typed.ts'), text)
    const tsc = join(root, 'node_modules/typescript/bin/tsc')
    const child = run(['node', tsc, '-p', 'tsconfig.json'], { cwd: project.dir.path, env: hostEnv('', keys) })
    expect({ code: await child.exited, stdout: child.stdout() }).toEqual({ code: 0, stdout: '' })
  },
  30_000,
)

const edgeProgram = `
import { createIntelExporter, createRelayHandler, detectAgent, init, verifyWebhook } from '@sightglass/sdk/edge'
globalThis.main = async ({ url, ingestKey, publishableKey, id }) => {
  const exporter = createIntelExporter({ url, ingestKey, gzip: true })
  const client = init({ publishableKey, siteId: 'edge', sessionId: 's', exporters: [exporter] })
  for (let index = 0; index < 20; index++) {
    const agent = detectAgent('GPTBot/1.0')
    client.trace({ type: 'agent.detected', id: id + index, agent, metadata: { note: 'n' + index } })
  }
  const isSent = await exporter.flush(10_000)
  await client.close()
  return { isSent, stats: exporter.stats(), kinds: [typeof createRelayHandler, typeof verifyWebhook] }
}`

test('the edge build names no Node module and runs where there are only web standards', async () => {
  const modules = readdirSync(packageDir, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.js'),
  )
  const reached = new Set<string>()
  const walk = (path: string): void => {
    if (reached.has(path)) return
    reached.add(path)
    const text = readFileSync(path, 'utf8')
    expect(text).not.toMatch(/from ?"node:|\bprocess\b|\bBuffer\b|\brequire\b/)
    for (const match of text.matchAll(/from ?"(\.[^"]+)"/g)) walk(join(path, '..', match[1] ?? ''))
  }
  walk(join(packageDir, 'edge.js'))
  expect(reached.size).toBeLessThan(modules.length) // the Node entry, at least, is not among them
  const entry = project.dir.join('edge.mjs')
  writeFileSync(entry, edgeProgram)
  const built = await Bun.build({ entrypoints: [entry], target: 'browser', format: 'iife' })
  const web = {
    fetch,
    URL,
    URLSearchParams,
    Headers,
    Request,
    Response,
    Blob,
    TextEncoder,
    TextDecoder,
    crypto,
    atob,
  }
  const browserGlobals = { AbortController, CompressionStream, setTimeout, clearTimeout, queueMicrotask }
  const world = createContext({ ...web, ...browserGlobals }) as { main(settings: object): Promise<unknown> }
  runInContext((await built.outputs[0]?.text()) ?? '', world)
  const { ingestKey, publishableKey } = keys
  const result = await world.main({ url: appliance.url, ingestKey, publishableKey, id: 'edge-' })
  expect(result).toMatchObject({
    isSent: true,
    stats: { accepted: 20, rejected: 0 },
    kinds: ['function', 'function'],
  })
  expect((await storedIds(appliance.url, keys.secretKey)).filter((id) => id.startsWith('edge-')).length).toBe(
    20,
  )
}, 90_000)

test('edge runtimes get the edge build from the exports map, Node the one with files', async () => {
  const text = `process.stdout.write(import.meta.resolve('@sightglass/sdk').split('/').at(-1))`
  expect(await runProgram('which.mjs', ['node'], text)).toBe('node.js')
  for (const condition of ['workerd', 'edge-light', 'browser']) {
    expect(await runProgram('which.mjs', ['node', '--conditions', condition], text)).toBe('edge.js')
  }
})
