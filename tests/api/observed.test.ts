/** `observed` beside events: the appliance judges what a sender saw, and forgets the address (contract §17). */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { readFileSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Provenance } from '../../db/contract/provenance.ts'
import { withoutObserved } from '../../server/ingest/observed-text.ts'
import { event } from '../support/events.ts'
import { until } from '../support/until.ts'
import { testServer, type TestServer } from '../support/server.ts'

const genuine = '20.171.206.77' // in OpenAI's list of GPTBot
const foreign = '198.51.100.23'
const agent = { class: 'crawler', vendor: 'OpenAI', name: 'GPTBot', userAgent: 'GPTBot/1.2' }

let server: TestServer
let ingest: string
let keyId: string

beforeAll(async () => {
  server = await testServer()
  ingest = await server.key('ingest')
  keyId = (await server.store.keys.list({ orgId: server.org.id }))[0]!.id
})
afterAll(() => server[Symbol.asyncDispose]())

const nowText = (): string => new Date().toISOString()
const request = (id: string, overrides: object = {}) =>
  event(id, { type: 'agent.requested', outcome: 'success', occurredAt: nowText(), agent, ...overrides })

async function post(body: unknown): Promise<{ status: number; body: { [field: string]: unknown } }> {
  const headers = { 'content-type': 'application/json' }
  const response = await server.call('/v1/sdk/events', { method: 'POST', key: ingest, body, headers })
  return { status: response.status, body: (await response.json()) as { [field: string]: unknown } }
}

async function record(id: string): Promise<Provenance> {
  return (await server.store.events.byId({ orgId: server.org.id, id }))!.provenance!
}

test('a genuine and a false address are judged by the appliance, in the name of the key', async () => {
  const events = [request('real'), request('fake'), request('unseen')]
  const observed = {
    real: { address: `[::ffff:${genuine}]:443` },
    fake: { address: foreign },
    other: { address: genuine },
  }
  expect(await post({ events, observed })).toEqual({
    status: 202,
    body: { ok: true, accepted: 3, deduped: 0 },
  })
  const real = await record('real')
  expect(real).toMatchObject({ verdict: 'verified', judgedBy: 'appliance', observedBy: keyId, network: null })
  expect(JSON.parse(real.evidence!)).toMatchObject({ method: 'address', list: 'gptbot' })
  expect(JSON.parse(real.evidence!).listDigest).toMatch(/^[0-9a-f]{64}$/)
  expect(await record('fake')).toMatchObject({
    verdict: 'contradicted',
    judgedBy: 'appliance',
    observedBy: keyId,
    network: '198.51.100.0/24',
  })
  expect(await record('unseen')).toMatchObject({ verdict: null, judgedBy: null, observedBy: null })
  const secret = await server.key('secret')
  expect(await (await server.call('/v1/traces/real', { key: secret })).json()).toEqual(events[0])
})

test('observations beside a large list of events are judged too, up to a limit', async () => {
  const padding = { note: 'x'.repeat(900) }
  const large = (name: string) =>
    Array.from({ length: 500 }, (_, index) => request(`${name}-${index}`, { metadata: padding }))
  const addresses = (name: string) =>
    large(name).map(({ id }, index) => [id, { address: index % 2 === 0 ? genuine : foreign }])
  const observed = Object.fromEntries(addresses('large'))
  expect((await post({ events: large('large'), observed })).body).toEqual({
    ok: true,
    accepted: 500,
    deduped: 0,
  })
  expect(await record('large-498')).toMatchObject({ verdict: 'verified', observedBy: keyId })
  expect(await record('large-499')).toMatchObject({ verdict: 'contradicted', observedBy: keyId })
  expect(
    (await post({ observed: Object.fromEntries(addresses('first')), events: large('first') })).status,
  ).toBe(202)
  expect(await record('first-0')).toMatchObject({ verdict: 'verified' })
  const beyond = { ...Object.fromEntries(addresses('beyond')), filler: 'x'.repeat(1024 * 1024) }
  const answer = await post({ events: large('beyond'), observed: beyond })
  expect(answer.body).toMatchObject({ accepted: 500, warnings: [{ path: 'observed', code: 'too_large' }] })
  expect(await record('beyond-0')).toMatchObject({ verdict: null })
})

test('the limits say that observations are accepted', async () => {
  expect(await (await server.call('/v1/limits')).json()).toMatchObject({ observed: true })
})

test('a verdict in the text is the sender’s, also beside an observation that disagrees', async () => {
  const claimed = { agent: { ...agent, verdict: 'verified', trust: 'verified' } }
  await post({
    events: [request('says', claimed), request('says-and-shows', claimed)],
    observed: { 'says-and-shows': { address: foreign } },
  })
  expect(await record('says')).toMatchObject({ verdict: 'verified', judgedBy: 'sender', observedBy: null })
  expect(await record('says-and-shows')).toMatchObject({ verdict: 'contradicted', judgedBy: 'appliance' })
})

test('people and unknown programs are not judged', async () => {
  const person = { agent: { userAgent: 'Mozilla/5.0 Firefox/140.0' } }
  await post({ events: [request('person', person)], observed: { person: { address: genuine } } })
  expect(await record('person')).toMatchObject({ verdict: null, judgedBy: null, observedBy: null })
})

test('an entry that cannot be used names its event in warnings, and the event is stored', async () => {
  const bad: [string, unknown][] = [
    ['none', null],
    ['text', genuine],
    ['empty', {}],
    ['number', { address: 5 }],
    ['name', { address: 'crawler.example' }],
    ['long', { address: '1'.repeat(65) }],
    ['list', { address: [genuine] }],
  ]
  const answer = await post({
    events: bad.map(([id]) => request(id)),
    observed: Object.fromEntries(bad),
  })
  expect(answer).toMatchObject({ status: 202, body: { ok: true, accepted: bad.length, deduped: 0 } })
  const warnings = answer.body['warnings'] as { id: string; path: string }[]
  expect(warnings.map(({ id, path }) => [id, path])).toEqual(bad.map(([id]) => [id, 'observed']))
  for (const [id] of bad) expect(await record(id)).toMatchObject({ verdict: null, judgedBy: null })
  for (const [index, observed] of [null, 5, 'x', [], [[{}]]].entries()) {
    const shapeless = await post({ events: [request(`shape${index}`)], observed })
    expect(shapeless).toMatchObject({ status: 202, body: { ok: true, accepted: 1 } })
  }
  const name = '{"__proto__":{"address":"20.171.206.1"}}'
  const text = JSON.stringify({ events: [request('__proto__')] }).replace(/}$/, `,"observed":${name}}`)
  expect(await post(text)).toMatchObject({ status: 202, body: { accepted: 1 } })
  expect(await record('__proto__')).toMatchObject({ verdict: 'verified' })
})

test('law: every spelling of a body gives the same texts and verdicts', async () => {
  let count = 0
  const part = fc.record({
    isReal: fc.boolean(),
    isObserved: fc.boolean(),
    text: fc.string({ unit: 'binary' }),
  })
  await fc.assert(
    fc.asyncProperty(
      fc.array(part, { minLength: 1, maxLength: 8 }),
      fc.constantFrom('canonical', 'first', 'spaced', 'brackets', 'dense'),
      async (parts, spelling) => {
        const sentParts = parts.map((sentPart) => ({
          ...sentPart,
          event: request(`law${count++}`, { note: sentPart.text.toWellFormed().replaceAll('\0', '') }),
        }))
        const events = sentParts.map((sentPart) => sentPart.event)
        const observed: { [id: string]: unknown } = {}
        for (const {
          event: { id },
          isReal,
          isObserved,
        } of sentParts)
          if (isObserved)
            observed[id] = { address: isReal ? genuine : foreign, more: spelling === 'brackets' ? ']}' : 1 }
        if (spelling === 'dense') Object.assign(observed, { x: Array(4_000).fill([]) })
        const body =
          spelling === 'first'
            ? JSON.stringify({ observed, events })
            : JSON.stringify({ events, observed }, null, spelling === 'spaced' ? 1 : 0)
        expect(await post(body)).toMatchObject({ status: 202, body: { ok: true, accepted: events.length } })
        for (const { event: sentEvent, isReal, isObserved } of sentParts) {
          const stored = (await server.store.events.byId({ orgId: server.org.id, id: sentEvent.id }))!
          expect(JSON.parse(stored.json)).toEqual(sentEvent)
          const isJudged = isObserved && spelling !== 'dense' // with more entries than events may have
          expect(stored.provenance!.verdict).toBe(isJudged ? (isReal ? 'verified' : 'contradicted') : null)
        }
      },
    ),
    { numRuns: 40 },
  )
}, 60_000)

/** An address as text in the forms that programs write. */
function formsOf(address: string): Buffer[] {
  const bytes = address.split('.').map(Number)
  const hex = bytes.map((byte) => byte.toString(16).padStart(2, '0'))
  const texts = [
    address,
    bytes.toReversed().join('.'),
    hex.join(''),
    `${hex[0]}${hex[1]}:${hex[2]}${hex[3]}`,
    String(Buffer.from(bytes).readUInt32BE()),
    Buffer.from(address).toString('base64').replace(/=+$/, ''),
    bytes.join('\\u002e'),
  ]
  return texts.map((text) => Buffer.from(text))
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile())
}

test('law: no rejected request leaves an address in its sample', async () => {
  const name = fc.constantFrom(
    '"observed"',
    '"obs\\u0065rved"',
    '"OBSERVED"',
    "'observed'",
    'observed',
    '"observed" ',
  )
  const entry = fc.constantFrom(
    `{"e":{"address":"${genuine}"}}`,
    `{"e":{"address":"${genuine}"`,
    `"${genuine}"`,
    genuine,
    `[{"a":"}","b":"${genuine}"}]`,
    `{"a":"\\"${genuine}"}`,
    `{a:'${genuine}'}`,
  )
  const frame = fc.constantFrom(
    '{"events":[],#}',
    '{#,"events":[]}',
    '{"a":{#}',
    '[{#}]',
    '{"events":[{},{#',
    '#\n{}',
    'x#}}]',
  )
  await fc.assert(
    fc.asyncProperty(
      name,
      fc.constantFrom(':', ' : ', ' =', ':\n'),
      entry,
      frame,
      async (key, mark, value, around) => {
        const text = around.replace('#', () => `${key}${mark}${value}`)
        expect(withoutObserved(text)).not.toContain(genuine)
        const { status } = await post(text)
        expect(status).toBe(400)
      },
    ),
    { numRuns: 200 },
  )
  const list = () => server.store.rejected.list({ orgId: server.org.id, limit: 100 })
  await until(async () => (await list()).length > 50)
  const samples = await list()
  expect(JSON.stringify(samples)).not.toContain(genuine)
}, 60_000)

test('the bytes of no address are in the data folder', async () => {
  const address = '20.171.206.213'
  const otherAddress = '203.0.113.211'
  await post({
    events: [request('gone'), request('lost')],
    observed: { gone: { address }, lost: { address: otherAddress } },
  })
  await post({ events: [], observed: { gone: { address }, lost: { address: otherAddress } } })
  expect((await record('lost')).network).toBe('203.0.113.0/24')
  const files = filesBelow(server.dataDir)
  expect(files.length).toBeGreaterThan(0)
  for (const path of files) {
    const bytes = readFileSync(path)
    for (const form of [...formsOf(address), ...formsOf(otherAddress)])
      expect([path, form.toString('latin1'), bytes.includes(form)]).toEqual([
        path,
        form.toString('latin1'),
        false,
      ])
  }
})
