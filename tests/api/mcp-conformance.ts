/**
 * Runs the official conformance suites of MCP against the executable: `bun tests/api/mcp-conformance.ts --full`. They
 * are installed into a temporary folder from the registry, so this is no test. The suites call diagnostic tools by
 * name; those are answered by the same protocol code with the tools below.
 */
import { join } from 'node:path'
import { answerMessage, RpcError, type McpServer, type ToolResult } from '../../server/mcp/protocol.ts'
import type { Schema } from '../../server/http/validate.ts'
import { startAppliance } from '../support/binary.ts'
import { run } from '../support/process.ts'
import { tempDir } from '../support/temp-dir.ts'

type Against = 'executable' | 'diagnostics'

interface Suite {
  version: string // of @modelcontextprotocol/conformance
  revision: string // of the protocol
  scenarios: { [against in Against]: string[] }
}

const calls = [
  'tools-call-simple-text',
  'tools-call-image',
  'tools-call-audio',
  'tools-call-embedded-resource',
  'tools-call-mixed-content',
  'tools-call-error',
  'json-schema-2020-12',
]
const handshake = ['server-initialize', 'ping', 'tools-list', 'dns-rebinding-protection']
const suites: Suite[] = [
  {
    version: '0.1.16',
    revision: '2025-06-18',
    scenarios: { executable: ['server-initialize', 'ping', 'tools-list'], diagnostics: calls.slice(0, 6) },
  },
  { version: '0.1.16', revision: '2025-11-25', scenarios: { executable: handshake, diagnostics: calls } },
  {
    version: '0.2.0-alpha.12',
    revision: '2025-11-25',
    scenarios: { executable: [...handshake, 'server-session-lifecycle'], diagnostics: calls },
  },
  {
    version: '0.2.0-alpha.12',
    revision: '2026-07-28',
    scenarios: {
      executable: [
        'server-stateless',
        'tools-list',
        'dns-rebinding-protection',
        'caching',
        'http-header-validation',
      ],
      diagnostics: ['server-stateless', ...calls],
    },
  },
]

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='
const wav = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA='
const text = (words: string) => ({ type: 'text', text: words })
const resource = (words: string, mimeType = 'text/plain') => ({
  type: 'resource',
  resource: { uri: 'test://embedded-resource', mimeType, text: words },
})

const diagnostics: { [name: string]: () => ToolResult } = {
  test_simple_text: () => ({ content: [text('This is a simple text response for testing.')] }),
  test_image_content: () => ({ content: [{ type: 'image', data: png, mimeType: 'image/png' }] }),
  test_audio_content: () => ({ content: [{ type: 'audio', data: wav, mimeType: 'audio/wav' }] }),
  test_embedded_resource: () => ({ content: [resource('This is an embedded resource content.')] }),
  test_multiple_content_types: () => ({
    content: [
      text('Multiple content types test:'),
      { type: 'image', data: png, mimeType: 'image/png' },
      resource('{"test":"data","value":123}', 'application/json'),
    ],
  }),
  test_error_handling: () => ({
    content: [text('This tool intentionally returns an error for testing')],
    isError: true,
  }),
  test_missing_capability: () => {
    throw new RpcError(-32021, 'The client lacks the capability sampling.', {
      status: 400,
      data: { requiredCapabilities: { sampling: {} } },
    })
  },
  test_streaming_elicitation: () => ({ content: [text('done')] }),
  test_logging_tool: () => ({ content: [text('done')] }),
  json_schema_2020_12_tool: () => ({ content: [text('done')] }),
}

/** The schema that the suite looks for, with keywords of JSON Schema 2020-12. */
const schema2020 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
}

export const diagnosticServer: McpServer = {
  info: { name: 'diagnostics', title: 'Diagnostics', version: '1' },
  instructions: '',
  tools: Object.keys(diagnostics).map((name) => ({
    name,
    title: name,
    description: `The suite calls ${name}.`,
    inputSchema: (name === 'json_schema_2020_12_tool' ? schema2020 : { type: 'object' }) as Schema,
  })),
  async call(name) {
    const diagnostic = diagnostics[name]
    if (diagnostic === undefined) throw new RpcError(-32602, `Unknown tool: ${name}`)
    return diagnostic()
  },
}

function serveDiagnostics() {
  return Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      if (request.method !== 'POST') return new Response(null, { status: 405, headers: { allow: 'POST' } })
      const { status, body } = await answerMessage(diagnosticServer, await request.json(), request.headers)
      return body === null ? new Response(null, { status }) : Response.json(body, { status })
    },
  })
}

/** Adds the key, which the suites cannot send. */
function serveRelay(url: string, key: string) {
  return Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const headers = new Headers(request.headers)
      headers.set('authorization', `Bearer ${key}`)
      const body = request.method === 'POST' ? await request.arrayBuffer() : null
      return fetch(`${url}${new URL(request.url).pathname}`, { method: request.method, headers, body })
    },
  })
}

/** Also the registry that npm uses. */
const inherited = process.env as Record<string, string>

async function install(version: string, folder: string): Promise<string> {
  await Bun.write(join(folder, 'package.json'), '{"private":true}')
  const child = run(
    [
      'npm',
      'install',
      '--no-audit',
      '--no-fund',
      '--ignore-scripts',
      `@modelcontextprotocol/conformance@${version}`,
    ],
    { cwd: folder, env: inherited },
  )
  if ((await child.exited) !== 0) throw new Error(child.stderr())
  return join(folder, 'node_modules/@modelcontextprotocol/conformance/dist/index.js')
}

/** Checks of capabilities that the server does not declare, and of tools that only the diagnostics have. */
const notDeclared = /^sep-2549-(?:prompts|resources)-/
const needsDiagnostics =
  /^sep-2575-(?:server-rejects-undeclared-capability|missing-capability-http-400|http-server-no-independent-requests-on-stream|server-no-log-without-loglevel)$/

function isExpected({ id }: Check, target: Against): boolean {
  return notDeclared.test(id) || (target === 'executable' && needsDiagnostics.test(id))
}

interface Check {
  id: string
  status: string
  errorMessage?: string
}

async function checksOf(program: string, url: string, scenario: string, revision: string): Promise<Check[]> {
  using out = tempDir('mcp-checks')
  const words = ['server', '--url', url, '--scenario', scenario, '--spec-version', revision, '-o', out.path]
  const child = run([process.execPath, program, ...words], { cwd: out.path, env: inherited })
  await child.exited
  const checkPaths = [...new Bun.Glob('**/checks.json').scanSync(out.path)]
  if (checkPaths[0] === undefined)
    return [{ id: scenario, status: 'NOT RUN', errorMessage: child.stdout() + child.stderr() }]
  return (await Bun.file(join(out.path, checkPaths[0])).json()) as Check[]
}

async function main(): Promise<number> {
  const appliance = await startAppliance()
  const keyExit = await appliance.cli('key', 'create', '--kind', 'secret', '--label', 'conformance', '--json')
  const relay = serveRelay(appliance.url, (JSON.parse(keyExit.stdout) as { key: string }).key)
  const fixed = serveDiagnostics()
  const urls = {
    executable: `http://localhost:${relay.port}/mcp`,
    diagnostics: `http://localhost:${fixed.port}/mcp`,
  }
  let failures = 0
  const programs = new Map<string, string>()
  using folder = tempDir('mcp-suites')
  for (const { version, revision, scenarios } of suites) {
    const program = programs.get(version) ?? (await install(version, join(folder.path, version)))
    programs.set(version, program)
    for (const target of ['executable', 'diagnostics'] as const)
      for (const scenario of scenarios[target]) {
        const checks = await checksOf(program, urls[target], scenario, revision)
        const counts = Object.entries(Object.groupBy(checks, ({ status }) => status)).map(
          ([status, statusChecks]) => `${statusChecks!.length} ${status}`,
        )
        console.info(`${version} ${revision} ${target} ${scenario}: ${counts.join(', ')}`)
        const wrong = checks.filter(({ status }) => !['SUCCESS', 'INFO', 'SKIPPED'].includes(status))
        for (const check of wrong) {
          const isFailure = !isExpected(check, target)
          if (isFailure) failures++
          console.info(
            `  ${isFailure ? check.status : 'not declared'} ${check.id}: ${check.errorMessage ?? ''}`,
          )
        }
      }
  }
  await Promise.all([relay.stop(true), fixed.stop(true)])
  await appliance.stop()
  return failures === 0 ? 0 : 1
}

if (import.meta.main) {
  if (!process.argv.includes('--full')) throw new Error('installs packages from the registry: add --full')
  process.exit(await main())
}
