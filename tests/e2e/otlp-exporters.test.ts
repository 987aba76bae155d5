/** OpenTelemetry's own exporters, unmodified, send to the executable with two environment variables. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Appliance } from '../support/binary.ts'
import { run } from '../support/process.ts'
import { startWithKeys, type Keys } from './sdk-appliance.ts'

let appliance: Appliance
let keys: Keys
beforeAll(async () => {
  ;({ appliance, keys } = await startWithKeys())
}, 60_000)
afterAll(() => appliance.stop())

const program = join(import.meta.dir, 'otel-program.mjs')

async function read(path: string): Promise<{ [field: string]: unknown }> {
  const response = await fetch(`${appliance.url}${path}`, {
    headers: { authorization: `Bearer ${keys.secretKey}` },
  })
  return (await response.json()) as { [field: string]: unknown }
}

const guide = async () => (await fetch(`${appliance.url}/docs/opentelemetry`)).text()

/** The two variables as the guide shows them, with a real key. */
async function guideVariables(): Promise<Record<string, string>> {
  const block = /<pre[^>]*>(export OTEL_EXPORTER_OTLP_ENDPOINT[^<]*)</.exec(await guide())![1]!
  const lines = block.replaceAll('&quot;', '').replace('agtx_ik_your-key', keys.ingestKey).split('\n')
  expect(lines).toHaveLength(2)
  return Object.fromEntries(lines.map((line) => /^export (\w+)=(.*)$/.exec(line)!.slice(1)))
}

test('the command of the guide sends a span', async () => {
  const command = /<pre[^>]*>(curl [^<]*)</.exec(await guide())![1]!
  const line = command
    .replaceAll('&quot;', '"')
    .replaceAll('&#x27;', "'")
    .replace('agtx_ik_your-key', keys.ingestKey)
  const env = { PATH: process.env.PATH ?? '' }
  const child = run(['sh', '-c', line], { cwd: import.meta.dir, env })
  expect([await child.exited, child.stdout()]).toEqual([0, '{}'])
  expect((await read('/v1/metrics?siteId=my-shop'))['total']).toBe(1)
})

test.each(['protobuf', 'json'])(
  'in %s: a batch of 301 spans sent five times is stored once',
  async (form) => {
    const child = run([process.execPath, program, form, form, '300'], {
      cwd: import.meta.dir,
      env: { PATH: process.env.PATH ?? '', ...(await guideVariables()) },
    })
    expect({ code: await child.exited, out: child.stdout(), err: child.stderr() }).toEqual({
      code: 0,
      out: '0 \n'.repeat(5),
      err: '',
    })
    const { total, byType, byOutcome } = await read(`/v1/metrics?siteId=${form}`)
    expect({ total, byType, byOutcome }).toEqual({
      total: 301,
      byType: { 'agent.invoked': 1, 'tool.executed': 300 },
      byOutcome: { success: 271, error: 30 },
    })
    const { events } = await read(`/v1/traces?siteId=${form}&outcome=error&limit=1`)
    expect((events as unknown[])[0]).toMatchObject({
      sessionId: `conversation-${form}`,
      error: 'no answer',
      metadata: { scope: 'trip-planner', parentSpanId: expect.stringMatching(/^[0-9a-f]{16}$/) },
    })
  },
  30_000,
)
