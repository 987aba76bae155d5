/** An independent reader finds every event in the encoded file, character by character, and every column. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { parquetMetadata, parquetReadObjects } from 'hyparquet'
import { validEvent } from '../../tests/fuzz/any-event.ts'
import { exampleEvent, eventsInOrder } from '../../tests/support/events.ts'
import { eventFields } from '../../db/contract/event-fields.ts'
import { packed } from './columns.ts'
import { eventEncoder, parquetColumns, rowGroup, type EventRow } from './events.ts'
import { thriftBytes } from './thrift.ts'

const compressors = { ZSTD: (bytes: Uint8Array) => Bun.zstdDecompressSync(bytes) }

function fileOf(rows: EventRow[], limits = rowGroup): ArrayBuffer {
  const encoder = eventEncoder('org_1', 'sightglass test', limits)
  const parts = [...rows.flatMap((row) => encoder.add(row)), ...encoder.end()]
  const whole = new Uint8Array(Buffer.concat(parts))
  expect(encoder.bytes()).toBe(whole.length)
  return whole.buffer
}

const read = (file: ArrayBuffer) => parquetReadObjects({ file, compressors })

const rowOf = (event: unknown, index: number): EventRow => ({
  json: JSON.stringify(event),
  occurredAtMs: Date.UTC(2026, 10, 1) - index * 1_000,
  receivedAtMs: Date.UTC(2026, 10, 1) + index,
})

test('a reader finds any events as they were sent', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(validEvent, { maxLength: 9 }), async (events) => {
      const rows = events.map(rowOf)
      const parquetRows = await read(fileOf(rows, { rowsMax: 4, eventBytesMax: 2_000 }))
      expect(parquetRows.map(({ event }) => event as string)).toEqual(rows.map(({ json }) => json))
      expect(parquetRows.map(({ id }) => id as string)).toEqual(events.map(({ id }) => String(id)))
      expect(parquetRows.map(({ occurred_at: occurredAt }) => (occurredAt as Date).getTime())).toEqual(
        rows.map(({ occurredAtMs }) => occurredAtMs),
      )
    }),
    { numRuns: 60 },
  )
})

test('columns have the values of the fields', async () => {
  const otherEvent = {
    ...exampleEvent,
    id: 'evt_2',
    outcome: 'success',
    policy: null,
    metadata: null,
    durationMs: 0.25,
  }
  const [first, second] = await read(fileOf([exampleEvent, { ...otherEvent, agent: undefined }].map(rowOf)))
  expect(first).toMatchObject({
    id: 'evt_1',
    org: 'org_1',
    site: 'shop-acme',
    session: 'sess_1',
    type: 'authz.evaluated',
    outcome: 'blocked',
    tool: 'checkout.pay',
    duration_ms: 3,
    agent_class: 'dom',
    agent_name: null,
    agent_trust: 'detected',
    agent_vendor: 'Operator',
    decision: 'deny',
    rule_id: 'tool:checkout.pay',
    page: '/checkout',
    protocol: 'web-bot-auth',
    subject: null,
    error: null,
    received_at: new Date('2026-11-01T00:00:00.000Z'),
  })
  // Without a decision the outcome implies one, as in CSV.
  expect(second).toMatchObject({ decision: 'allow', agent_class: null, page: null, duration_ms: 0.25 })
})

test('every field that the store knows has a column', () => {
  expect(parquetColumns.length).toBe(eventFields.length + 8)
  expect(new Set(parquetColumns).size).toBe(parquetColumns.length)
})

test('an empty file is readable, and many row groups are counted', async () => {
  expect(await read(fileOf([]))).toEqual([])
  const rows = eventsInOrder(1_001).map(rowOf)
  const metadata = parquetMetadata(fileOf(rows, { rowsMax: 100, eventBytesMax: Infinity }))
  expect([Number(metadata.num_rows), metadata.row_groups.length]).toEqual([1_001, 11])
  const type = metadata.row_groups[0]!.columns[5]!.meta_data!
  expect(type.statistics).toMatchObject({ min_value: 'authz.evaluated', null_count: 0n })
})

test('large texts, texts beyond the BMP and lone surrogates do not shift other rows', async () => {
  const hostile = ['€'.repeat(20_000), '\u{1f600}'.repeat(9_000), '\ud800x', '\u0000', '"'.repeat(999), '']
  const rows = hostile.map((text, index) =>
    rowOf({ ...exampleEvent, id: `h${index}`, tool: text, error: text, metadata: { page: text } }, index),
  )
  const parquetRows = await read(fileOf(rows))
  expect(parquetRows.map(({ event }) => event as string)).toEqual(rows.map(({ json }) => json))
  expect(parquetRows.map(({ tool }) => tool as string)).toEqual(hostile.map((text) => text.toWellFormed()))
})

test('levels and dictionary numbers are packed as the format says', () => {
  expect([...packed(new Uint8Array([1, 1, 1]), 3, 1)]).toEqual([6, 1])
  expect([...packed(new Uint8Array([1, 0, 1]), 3, 1)]).toEqual([3, 0b101])
  // The example of the Parquet specification: 0 to 7 in three bits each.
  const counted = Uint32Array.from({ length: 8 }, (_, index) => index)
  expect([...packed(counted, 8, 3)]).toEqual([3, 0b10001000, 0b11000110, 0b11111010])
})

test('integers of the footer have up to 53 bits', () => {
  expect([...thriftBytes([[1, { i64: 150 }]])]).toEqual([0x16, 0xac, 0x02, 0])
  expect([...thriftBytes([[20, { i64: -1 }]])]).toEqual([0x06, 40, 1, 0])
  expect(thriftBytes([[1, { i64: 2 ** 52 }]]).length).toBe(10)
})
