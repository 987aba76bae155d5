/** The middleware on Node.js: the same 30 requests give the same events, also when only `watchHttp` sees them. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { CompleteEvent } from '../../sdk/client/event.ts'
import { packFormat } from '../../sdk/judge/evidence-pack.ts'
import { sightglass } from '../../sdk/middleware/middleware.ts'
import { init } from '../../sdk/node.ts'
import { publishableKey } from '../support/fake-appliance.ts'
import { createSigner } from '../support/sign-request.ts'
import { comparable, gptBot, type Running, sendAll } from '../support/framework-requests.ts'
import { nodeFrameworks } from '../support/node-frameworks.ts'
import { run } from '../support/process.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'

const root = join(import.meta.dir, '../..')
let dir: TempDir
let expected: { answers: string[]; events: unknown[] }
beforeAll(async () => {
  dir = tempDir('frameworks')
  // Each file has a copy of the package, as the parts of an application that a bundler made have.
  for (const entry of ['tests/support/framework-host.ts', 'sdk/middleware/middleware.ts']) {
    const external = Object.keys(nodeFrameworks).filter((name) => !name.includes(':'))
    const built = await Bun.build({
      entrypoints: [join(root, entry)],
      outdir: dir.path,
      target: 'node',
      external,
    })
    expect(built.success).toBe(true)
  }
  symlinkSync(join(root, 'node_modules'), dir.join('node_modules'))
  expected = await onBun()
}, 60_000)
afterAll(() => dir.remove())

/** The responses and events of a server in this process. */
async function onBun(): Promise<typeof expected> {
  const events: CompleteEvent[] = []
  const client = init({
    publishableKey,
    siteId: 'shop',
    exporters: [{ export: (event) => events.push(event) }],
  })
  const middleware = sightglass<{ url: string }>(client, { skip: ({ url }) => url.endsWith('/skipped') })
  const running = await nodeFrameworks['node:http']!(middleware)
  const answers = await sendAll(running, () => events.length)
  await running.stop()
  return { answers, events: comparable(events) }
}

/** The same server on Node.js. */
async function onNode(name: string, env = {}): Promise<Running & { events(): CompleteEvent[] }> {
  const command = ['node', dir.join('framework-host.js'), name, dir.join('middleware.js')]
  const child = run(command, { cwd: dir.path, env: { PATH: process.env.PATH ?? '', ...env } })
  const url = await child.line((line) => /^listening on (\S+)$/.exec(line)?.[1] ?? null, 10_000)
  const events = () =>
    child
      .stdout()
      .split('\n')
      .slice(0, -1)
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as CompleteEvent)
  return { url, events, stop: () => child.signal('SIGKILL') }
}

test.each([...Object.keys(nodeFrameworks), 'watched'])(
  '%s on Node.js: the same responses and events, also of a handler that fails after its response',
  async (name) => {
    const running = await onNode(name)
    try {
      expect(await sendAll(running, () => running.events().length)).toEqual(expected.answers)
      const countBefore = running.events().length
      const early = name === 'watched' ? 2 : 0
      expect(comparable(running.events().slice(early))).toEqual(expected.events)
      for (const { metadata, durationMs } of running.events().slice(0, early))
        expect([metadata?.page, durationMs]).toEqual(['/early', undefined])
      const late = await fetch(`${running.url}/late`, { headers: { 'user-agent': gptBot } })
      const text = await late.text()
      while (running.events().length === countBefore) await Bun.sleep(1)
      expect(running.events().at(-1)).toMatchObject({
        type: 'agent.requested',
        outcome: 'success',
        metadata: { status: 200, bytes: text.length },
      })
    } finally {
      await running.stop()
    }
  },
  30_000,
)

test('the program that does the same with Next.js from npm can be started', async () => {
  const program = run([process.execPath, join(import.meta.dir, 'next-server.ts')], { cwd: dir.path, env: {} })
  expect(await program.exited).toBe(0)
  expect(program.stdout()).toStartWith('--full installs Next.js')
})

test('Node.js loads the evidence and verifies the signature of an agent with the user agent of a browser', async () => {
  const signer = createSigner()
  const today = new Date().toISOString().slice(0, 10)
  const directory = { operator: 'OpenAI', url: 'https://chatgpt.com', keys: [signer.jwk], seen: today }
  const pack = {
    format: packFormat,
    made: `${today}T00:00:00Z`,
    directories: [{ ...directory, source: 'https://chatgpt.com', digest: 'a'.repeat(64) }],
  }
  const served = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => Response.json(pack) })
  const running = await onNode('express', { EVIDENCE_URL: served.url.href })
  try {
    const created = Math.floor(Date.now() / 1_000)
    const cover = ['"@method"', '"@target-uri"', '"signature-agent"']
    const agent = '"https://chatgpt.com"'
    const times = { created, expires: created + 60 }
    const { headers } = signer.sign({ ...times, url: 'https://shop.example/a?b=c', agent, cover })
    const browser = ['user-agent', 'Mozilla/5.0 (X11; Linux x86_64) Chrome/156.0'] as [string, string]
    for (const path of ['/a?b=c', '/a?b=d'])
      await fetch(running.url + path, { headers: [...headers, browser] })
    await fetch(running.url, { headers: { 'user-agent': gptBot } })
    while (running.events().length < 4) await Bun.sleep(5)
    // In any order, because the first verification waits for the evidence.
    const requested = running.events().filter(({ type }) => type === 'agent.requested')
    const claimed = requested.find(({ agent: sender }) => sender?.['name'] === 'GPTBot')
    expect(requested.find((event) => event !== claimed)).toMatchObject({
      agent: {
        vendor: 'OpenAI',
        verdict: 'verified',
        evidence: { method: 'signature', keyId: signer.keyId },
      },
      metadata: { page: '/a' },
    })
    expect(claimed?.agent).toMatchObject({ name: 'GPTBot', verdict: 'unverifiable' })
    expect(running.events().length).toBe(4) // the second request was changed, so nobody knows who sent it
  } finally {
    await running.stop()
    await served.stop(true)
  }
}, 30_000)
