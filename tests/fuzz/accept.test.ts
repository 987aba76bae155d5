/** Hostile ingest bodies: each is rejected cleanly or every event is accounted for, always in time. */
import { describe, expect, test } from 'bun:test'
import zlib from 'node:zlib'
import fc from 'fast-check'
import { AppError, errorBody } from '../../server/errors.ts'
import { readBody } from '../../server/http/body.ts'
import { acceptEvents, type Accepted, eventsMediaType } from '../../server/ingest/accept.ts'
import { acceptInSteps } from '../../server/ingest/accept-large.ts'
import { atOnce } from '../../server/http/slices.ts'
import { limits } from '../../server/limits.ts'
import { changedEvent, validEvent } from './any-event.ts'
import { costlyTexts } from './hostile-bodies.ts'
import { exampleEvent } from '../support/events.ts'
import { canonical, jsonText } from './json-text.ts'
import { runs } from '../support/runs.ts'

/** Of processor time: ten times the longest body alone. */
const budgetMs = 3_000

const codes = new Set([
  'required',
  'wrong_type',
  'wrong_format',
  'too_long',
  'too_deep',
  'too_large',
  'too_many',
  'wrong_site',
])

/** Reads and accepts a body as the route does. Throwing anything that a client must not see fails the test. */
async function outcome(
  body: Uint8Array | string,
  headers: Record<string, string>,
): Promise<Accepted | AppError> {
  const start = process.cpuUsage()
  try {
    const request = new Request('http://host/', { method: 'POST', body: Buffer.from(body), headers })
    const type = eventsMediaType(request.headers.get('content-type'))
    const text = await readBody(request, { bytesMax: limits.bodyBytesMax })
    const whole = attempt(() => acceptEvents(text, type, []))
    // A large body is accepted in steps, with the same result.
    const stepped = attempt(() => atOnce(acceptInSteps(Buffer.from(text), type, [])))
    if (!isManyFields(stepped)) expect(shown(stepped)).toEqual(shown(whole))
    return whole
  } catch (error) {
    if (error instanceof AppError) return error
    throw error
  } finally {
    const { user, system } = process.cpuUsage(start)
    expect((user + system) / 1_000).toBeLessThan(budgetMs)
  }
}

function attempt(accept: () => Accepted): Accepted | AppError {
  try {
    return accept()
  } catch (error) {
    if (error instanceof AppError) return error
    throw error
  }
}

/** Only a large body is refused for this. */
function isManyFields(result: Accepted | AppError): boolean {
  return result instanceof AppError && result.message.includes('fields beside the events')
}

/** What must be the same of two results. Which fault of a broken body is named first may differ. */
function shown(result: Accepted | AppError): unknown {
  if (!(result instanceof AppError)) return { ...result, sample: undefined }
  return result.status === 413 ? 413 : 400
}

/** Every event sent is accounted for once, in order, and the errors of invalid ones are well formed. */
function checkAccount(result: Accepted | AppError): void {
  if (result instanceof AppError) {
    expect(result.status).toBeGreaterThanOrEqual(400)
    expect(result.status).toBeLessThan(500)
    return
  }
  const places = [...result.positions, ...result.rejected.map((event) => event.index)].toSorted(
    (a, b) => a - b,
  )
  expect(places).toEqual(Array.from({ length: result.sent }, (_, index) => index))
  expect(result.sent).toBeGreaterThan(0)
  expect(result.records).toHaveLength(result.positions.length)
  for (const { index, issues, excerpt } of result.rejected) {
    expect(issues.length).toBeGreaterThan(0)
    expect(issues.length).toBeLessThanOrEqual(limits.issuesPerEventMax)
    for (const issue of issues) {
      expect(codes.has(issue.code)).toBe(true)
      expect(issue.index).toBe(index)
    }
    expect(Buffer.byteLength(excerpt)).toBeLessThanOrEqual(limits.rejectedExcerptBytesMax)
  }
  for (const record of result.records) {
    expect(JSON.parse(record.json)).toMatchObject({
      id: record.id,
      type: record.type,
      outcome: record.outcome,
    })
  }
}

const json = { 'content-type': 'application/json' }
const ndjson = { 'content-type': 'application/x-ndjson' }
const anyHeaders = fc.record(
  {
    'content-type': fc.constantFrom('application/json', 'application/x-ndjson', 'text/plain', '', ';', '\t'),
    'content-encoding': fc.constantFrom(
      'gzip',
      'deflate',
      'br',
      'zstd',
      'identity',
      'gzip, gzip',
      'rot13',
      '',
    ),
  },
  { requiredKeys: [] },
)
const validBody = fc
  .array(validEvent, { minLength: 1, maxLength: 4 })
  .map((events) => JSON.stringify({ events }))

describe('any body', () => {
  test('random bytes under random headers', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 400 }), anyHeaders, async (bytes, headers) => {
        checkAccount(await outcome(bytes, headers))
      }),
      { numRuns: runs(800) },
    )
  })

  test('random bits of JSON', async () => {
    const bits = fc.array(
      fc.oneof(
        fc.constantFrom(
          '{',
          '}',
          '[',
          ']',
          ',',
          ':',
          '"',
          '\\',
          '\n',
          '"events"',
          '"events":[',
          '{"id":"x"}',
          '\\u0000',
        ),
        jsonText,
        fc.constant(JSON.stringify(exampleEvent)),
      ),
      { maxLength: 12 },
    )
    await fc.assert(
      fc.asyncProperty(bits, fc.constantFrom(json, ndjson), async (pieces, headers) => {
        checkAccount(await outcome(pieces.join(''), headers))
        checkAccount(await outcome(`{"events":[${pieces.join('')}]}`, headers))
      }),
      { numRuns: runs(800) },
    )
  })

  test('a valid body cut at every byte is rejected', async () => {
    const body = Buffer.from(
      JSON.stringify({ events: [exampleEvent, { ...exampleEvent, tool: 'größe \u{1f600}' }] }),
    )
    for (let end = 0; end < body.length; end++) {
      expect(await outcome(body.subarray(0, end), json)).toBeInstanceOf(AppError)
    }
    expect(await outcome(body, json)).toMatchObject({ sent: 2, positions: [0, 1] })
  })

  test('a valid body with changed bytes', async () => {
    const change = fc.record({ at: fc.nat(), gone: fc.nat(3), bytes: fc.uint8Array({ maxLength: 3 }) })
    const changes = fc.array(change, { minLength: 1, maxLength: 4 })
    await fc.assert(
      fc.asyncProperty(validBody, changes, async (body, edits) => {
        let bytes = Buffer.from(body)
        for (const { at: position, gone: cutLength, bytes: put } of edits) {
          const place = position % bytes.length
          bytes = Buffer.concat([bytes.subarray(0, place), put, bytes.subarray(place + cutLength)])
          if (bytes.length === 0) bytes = Buffer.from('{')
        }
        checkAccount(await outcome(bytes, json))
        checkAccount(await outcome(bytes, ndjson))
      }),
      { numRuns: runs(800) },
    )
  })

  test('a compressed body with changed bytes', async () => {
    const packers = { gzip: zlib.gzipSync, deflate: zlib.deflateSync, zstd: zlib.zstdCompressSync }
    const flips = fc.array(fc.tuple(fc.nat(), fc.integer({ min: 1, max: 255 })), {
      minLength: 1,
      maxLength: 3,
    })
    const encoding = fc.constantFrom('gzip', 'deflate', 'zstd')
    await fc.assert(
      fc.asyncProperty(validBody, encoding, flips, async (body, name, changes) => {
        const packed = Buffer.from(packers[name](body))
        for (const [position, bits] of changes) packed[position % packed.length]! ^= bits
        checkAccount(await outcome(packed, { ...json, 'content-encoding': name }))
      }),
      { numRuns: runs(400) },
    )
  })
})

describe('partly invalid events', () => {
  const events = fc.array(fc.oneof(validEvent, changedEvent, fc.jsonValue()), { minLength: 1, maxLength: 12 })

  test('each is stored unchanged or rejected, the same in a body, with spaces, and as lines', async () => {
    await fc.assert(
      fc.asyncProperty(events, async (values) => {
        const texts = values.map((value) => JSON.stringify(value) ?? 'null')
        const first = await outcome(`{"events":[${texts.join()}]}`, json)
        const results = [
          first,
          await outcome(`{ "events" : [ ${texts.join(' , ')} ] }`, json),
          await outcome(texts.join('\n'), ndjson),
        ]
        for (const result of results) {
          checkAccount(result)
          expect(result).toMatchObject({ sent: values.length })
          expect(result).toEqual(first)
        }
        const { records, positions } = first as Accepted
        expect(records.map((record) => canonical(record.json))).toEqual(
          positions.map((index) => canonical(texts[index] ?? '')),
        )
      }),
      { numRuns: runs(400) },
    )
  })

  test('the response repeats nothing of the body except ids', async () => {
    const canary = 'Canary!'
    const members = [
      'siteId',
      'sessionId',
      'occurredAt',
      'type',
      'outcome',
      'tool',
      'durationMs',
      'agent',
      'policy',
    ]
    for (const member of members) {
      for (const value of [canary, canary.repeat(900), { [canary]: canary }, [canary], `${canary}\u0000`]) {
        const event = { ...exampleEvent, [member]: value, [canary]: '\u0000' }
        const result = await outcome(JSON.stringify({ events: [event] }), json)
        const answer =
          result instanceof AppError ? errorBody(result, 'req_1') : result.rejected.map((bad) => bad.issues)
        expect(JSON.stringify(answer)).not.toContain(canary)
      }
    }
  })
})

describe('expensive bodies', () => {
  const mib = 1024 * 1024
  const bombs: [string, Uint8Array][] = [
    ['gzip', zlib.gzipSync(Buffer.alloc(64 * mib, 0x20))],
    ['deflate', zlib.deflateSync(Buffer.alloc(64 * mib, 0x5b))],
    [
      'br',
      zlib.brotliCompressSync(Buffer.alloc(64 * mib), {
        params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 3 },
      }),
    ],
    ['zstd', zlib.zstdCompressSync(Buffer.alloc(64 * mib, 0x5b))],
  ]
  test.each(bombs)('a %s bomb is 413 and uses less than 48 MiB of memory', async (encoding, bomb) => {
    Bun.gc(true)
    const memoryBefore = process.memoryUsage.rss()
    expect(await outcome(bomb, { ...json, 'content-encoding': encoding })).toMatchObject({
      code: 'payload_too_large',
    })
    expect(process.memoryUsage.rss() - memoryBefore).toBeLessThan(48 * mib)
  })

  const costly = Object.entries(costlyTexts)
  test.each(costly)('8 MiB of %s', async (_name, text) => {
    checkAccount(await outcome(text, json))
    checkAccount(await outcome(text, ndjson))
  })
})
