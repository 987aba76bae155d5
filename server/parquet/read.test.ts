/** A damaged Parquet file ends an import with an error that names it, never with a crash, a hang or wrong events. */
import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../errors.ts'
import { eventsInOrder } from '../../tests/support/events.ts'
import { tempDir } from '../../tests/support/temp-dir.ts'
import { eventEncoder } from './events.ts'
import { openParquetEvents } from './read.ts'

const jsons = eventsInOrder(40).map((event) => JSON.stringify(event))

function fileOf(texts: string[]): Buffer {
  const encoder = eventEncoder('org_1', 'test', { rowsMax: 25, eventBytesMax: Infinity })
  const rows = texts.map((json, index) => ({ json, occurredAtMs: index, receivedAtMs: index }))
  return Buffer.concat([...rows.flatMap((row) => encoder.add(row)), ...encoder.end()])
}

async function read(path: string): Promise<string[] | string> {
  const eventTexts: string[] = []
  try {
    const parquet = await openParquetEvents(path)
    if (parquet === null) return 'not Parquet'
    for await (const event of parquet.events()) eventTexts.push(event)
    return eventTexts
  } catch (error) {
    if (error instanceof AppError) return error.message
    throw error
  }
}

test('a whole file gives its events, other files are not Parquet', async () => {
  using folder = tempDir('parquet-read')
  const path = join(folder.path, 'a.parquet')
  writeFileSync(path, fileOf(jsons))
  expect(await read(path)).toEqual(jsons)
  expect((await openParquetEvents(path))?.rows).toBe(jsons.length)
  writeFileSync(path, '{"id":"x"}\n')
  expect(await read(path)).toBe('not Parquet')
  expect(await read(join(folder.path, 'missing'))).toBe('not Parquet')
})

test('a cut file is an error that names it, and flipped bytes never crash the reader', async () => {
  using folder = tempDir('parquet-flip')
  const whole = fileOf(jsons)
  const path = join(folder.path, 'b.parquet')
  for (let length = 4; length < whole.length; length += 97) {
    writeFileSync(path, whole.subarray(0, length))
    expect(await read(path)).toStartWith(path)
  }
  for (let offset = 4; offset < whole.length; offset += 13) {
    const changed = Buffer.from(whole)
    changed[offset]! ^= 1 << (offset % 8)
    writeFileSync(path, changed)
    const outcome = await read(path)
    if (typeof outcome === 'string') expect(outcome).toStartWith(path)
  }
}, 60_000)

test.each([
  ['{"format"', 'it is not JSON'],
  ...['null', '7', '[]', '{}', '{"format":"sightglass.events"}'].map((text) => [text, 'not the manifest']),
  ...['"x"', 'null', '[null]', '[{}]', '[{"path":["part-0.parquet"]}]', '[{"path":"../part-0.parquet"}]'].map(
    (files) => [`{"format":"sightglass.events","files":${files}}`, 'not the manifest'],
  ),
])('a manifest such as %s is refused with the reason', async (text, reason) => {
  using folder = tempDir('parquet-manifest')
  writeFileSync(join(folder.path, 'manifest.json'), text!)
  expect(await read(folder.path)).toContain(reason!)
})
