/** `sightglass mcp` and `mcp config` by the executable: through the control socket and over HTTP, in both eras. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mcpClients } from '../../server/mcp/clients.ts'
import { binaryPath, cli, startAppliance, type Appliance } from '../support/binary.ts'
import { event } from '../support/events.ts'
import { modernMeta, type RpcAnswer } from '../support/mcp.ts'
import { tempDir } from '../support/temp-dir.ts'
import { targetOf } from './mcp-clients.ts'

let appliance: Appliance
let key: string

beforeAll(async () => {
  appliance = await startAppliance()
  const make = async (kind: string) => {
    const keyExit = await appliance.cli('key', 'create', '--kind', kind, '--label', kind, '--json')
    return (JSON.parse(keyExit.stdout) as { key: string }).key
  }
  key = await make('secret')
  const events = Array.from({ length: 7 }, (_, n) => event(`e${n}`, { occurredAt: new Date().toISOString() }))
  const headers = { authorization: `Bearer ${await make('ingest')}`, 'content-type': 'application/json' }
  const response = await fetch(`${appliance.url}/v1/sdk/events`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ events }),
  })
  expect(response.status).toBe(202)
}, 120_000)
afterAll(() => appliance[Symbol.asyncDispose]())

const message = (id: number, method: string, params: object = {}) =>
  JSON.stringify({ jsonrpc: '2.0', id, method, params })
const requestText = [
  message(1, 'initialize', {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'c', version: '1' },
  }),
  '{"jsonrpc":"2.0","method":"notifications/initialized"}',
  message(2, 'tools/list'),
  message(3, 'tools/call', { name: 'count', arguments: { last: '24h', by: 'tool' } }),
  message(4, 'tools/call', { name: 'count', arguments: { last: '24h', by: 'tool' }, _meta: modernMeta }),
  message(5, 'server/discover', { _meta: modernMeta }),
  message(6, 'nosuch'),
].join('\n')

/** The answers by their id. */
function answersIn(stdout: string): Map<unknown, RpcAnswer> {
  const lines = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as RpcAnswer & { jsonrpc: string })
  expect(lines.every(({ jsonrpc }) => jsonrpc === '2.0')).toBe(true)
  return new Map(lines.map((line) => [line.id, line]))
}

function expectAnswers(stdout: string): void {
  const answers = answersIn(stdout)
  expect([...answers.keys()].toSorted()).toEqual([1, 2, 3, 4, 5, 6])
  expect(answers.get(1)?.result).toMatchObject({
    protocolVersion: '2025-06-18',
    serverInfo: { name: 'sightglass' },
  })
  expect((answers.get(2)?.result?.['tools'] as unknown[]).length).toBe(10)
  const counted = { structuredContent: { count: 7, rows: [{ untrusted: 'checkout.pay', count: 7 }] } }
  expect(answers.get(3)?.result).toMatchObject(counted)
  expect(answers.get(4)?.result).toMatchObject({ ...counted, resultType: 'complete' })
  expect(answers.get(5)?.result).toMatchObject({ supportedVersions: ['2026-07-28'] })
  expect(answers.get(6)?.error?.code).toBe(-32601)
  const { link } = answers.get(3)!.result!['structuredContent'] as { link: string }
  expect(link).toStartWith(`${appliance.url}/logs?`)
}

test('through the control socket, without a key; the audit log has one entry by cli', async () => {
  const { dataDir } = appliance
  const { code, stdout, stderr } = await cli(['mcp'], { dataDir, stdin: requestText })
  expect([code, stderr]).toEqual([0, ''])
  expectAnswers(stdout)
  await cli(['mcp'], { dataDir, stdin: message(1, 'tools/call', { name: 'timeline' }) })
  const exported = await appliance.cli('export', 'audit', '--format', 'json')
  const entries = exported.stdout.match(/"mcp_session\.started"/g) ?? []
  expect(entries.length).toBe(1)
  const wrongOrg = await cli(['mcp', '--org', 'nobody'], { dataDir, stdin: message(1, 'ping') })
  expect(answersIn(wrongOrg.stdout).get(1)?.error?.message).toContain('No organization "nobody"')
})

test('over HTTP with a key from the environment', async () => {
  const { code, stdout, stderr } = await cli(['mcp', '--to', appliance.url], {
    stdin: requestText,
    env: { SIGHTGLASS_MCP_KEY: key },
  })
  expect([code, stderr]).toEqual([0, ''])
  expectAnswers(stdout)
  const wrong = await cli(['mcp', '--to', appliance.url], {
    stdin: message(1, 'ping'),
    env: { SIGHTGLASS_MCP_KEY: 'agtx_sk_no' },
  })
  expect(answersIn(wrong.stdout).get(1)?.error?.message).toBe('Unknown API key.')
  const keylessExit = await cli(['mcp', '--to', appliance.url], { stdin: requestText })
  expect([keylessExit.code, keylessExit.stderr]).toEqual([2, expect.stringContaining('SIGHTGLASS_MCP_KEY')])
})

test('without an appliance every question says so', async () => {
  using dir = tempDir('mcp-none')
  const { code, stdout } = await cli(['mcp'], {
    dataDir: dir.path,
    stdin: `${message(1, 'tools/list')}\nnonsense\n`,
  })
  expect(code).toBe(0)
  expect(answersIn(stdout).get(1)?.error?.message).toContain('No appliance runs')
})

test('mcp config prints what each assistant documents, with and without a key', async () => {
  const variables = { SIGHTGLASS_MCP_KEY: 'agtx_sk_x' }
  const printed = async (...words: string[]) => (await cli(['mcp', 'config', ...words])).stdout
  for (const client of mcpClients) {
    const remote = await printed('--client', client, '--to', 'https://traces.example.com')
    expect([client, targetOf(client, remote, variables)]).toEqual([
      client,
      { url: 'https://traces.example.com/mcp', headers: { Authorization: 'Bearer agtx_sk_x' } },
    ])
    const local = await printed('--client', client, '--data-dir', '/srv/data')
    expect([client, targetOf(client, local, {})]).toEqual([
      client,
      { command: binaryPath, args: ['mcp', '--data-dir', '/srv/data'] },
    ])
  }
})

test('mcp config prints an entry, merges it and replaces only when asked', async () => {
  using dir = tempDir('mcp-config')
  const config = (...words: string[]) => cli(['mcp', 'config', ...words], { cwd: dir.path })
  const printed = await config('--client', 'claude', '--to', 'https://traces.example.com/base/')
  expect(JSON.parse(printed.stdout)).toMatchObject({
    mcpServers: { sightglass: { url: 'https://traces.example.com/base/mcp' } },
  })
  const file = join(dir.path, '.vscode/mcp.json')
  const wrote = await config('--client', 'vscode', '--data-dir', '/var/lib/sightglass', '--write', '--json')
  expect(JSON.parse(wrote.stdout)).toEqual({ client: 'vscode', file, changed: true })
  const { servers } = JSON.parse(readFileSync(file, 'utf8')) as {
    servers: { sightglass: { command: string; args: string[] } }
  }
  expect(servers.sightglass.args).toEqual(['mcp', '--data-dir', '/var/lib/sightglass'])
  expect(servers.sightglass.command).toEndWith('/dist/sightglass')
  const again = await config('--client', 'vscode', '--data-dir', '/var/lib/sightglass', '--write')
  expect(again.stdout).toContain('has this entry already')
  const otherArgs = ['--client', 'vscode', '--to', 'http://127.0.0.1:7400', '--write']
  const refused = await config(...otherArgs)
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('--yes')])
  expect((await config(...otherArgs, '--yes')).code).toBe(0)
  const toml = join(dir.path, 'config.toml')
  writeFileSync(toml, 'model = "x"\n', { mode: 0o600 })
  expect(
    (await config('--client', 'codex', '--file', toml, '--to', 'http://127.0.0.1:7400', '--write')).code,
  ).toBe(0)
  expect(Bun.TOML.parse(readFileSync(toml, 'utf8'))).toMatchObject({
    model: 'x',
    mcp_servers: { sightglass: {} },
  })
  expect(statSync(toml).mode & 0o777).toBe(0o600)
  expect((await config('--client', 'emacs')).code).toBe(2)
  expect(existsSync(`${toml}.draft`)).toBe(false)
})
