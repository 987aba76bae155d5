/** Parquet files of other programs: every encoding, and a few bytes that claim gigabytes, refused in bounded memory. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { run } from '../../tests/support/process.ts'
import { tempDir } from '../../tests/support/temp-dir.ts'
import { openParquetEvents } from './read.ts'
import { thriftBytes, type ThriftField, type ThriftStruct } from './thrift.ts'

setDefaultTimeout(60_000)

const uncompressed = 0
const snappy = 1
const gzip = 2
const zstd = 6
const dataPage = 0
const dictionaryPage = 2
const dataPageV2 = 3
const plain = 0
const rleDictionary = 8
const deltaLength = 6
const deltaBytes = 7
const mib = 1024 * 1024

const i32 = (value: number): ThriftField => ({ i32: value })
const struct = (...fields: ThriftStruct): ThriftField => ({ struct: fields })

interface Page {
  kind?: number
  size: number // uncompressed, as claimed
  packed: Uint8Array
  packedSize?: number // as claimed
  values: number
  encoding?: number
}

function pageBytes({
  kind = dataPage,
  size,
  packed,
  packedSize,
  values,
  encoding = plain,
}: Page): Uint8Array {
  const pageHeader =
    kind === dictionaryPage
      ? ([7, struct([1, i32(values)], [2, i32(plain)])] as const)
      : kind === dataPageV2
        ? ([
            8,
            struct(
              [1, i32(values)],
              [2, i32(0)],
              [3, i32(values)],
              [4, i32(encoding)],
              [5, i32(1_000_000)],
              [6, i32(0)],
            ),
          ] as const)
        : ([5, struct([1, i32(values)], [2, i32(encoding)], [3, i32(3)], [4, i32(3)])] as const)
  const header = thriftBytes([
    [1, i32(kind)],
    [2, i32(size)],
    [3, i32(packedSize ?? packed.length)],
    pageHeader,
  ])
  return Buffer.concat([header, packed])
}

interface File {
  pages: Page[]
  codec?: number
  rows?: number
  isOptional?: boolean
  footerBytes?: number
}

/** A file whose only column is `event`. */
function fileOf({ pages, codec = zstd, rows = 1e9, isOptional = false, footerBytes }: File): Uint8Array {
  const body = Buffer.concat(pages.map(pageBytes))
  const chunk: ThriftStruct = [
    [1, i32(6)],
    [2, { list: [i32(plain)] }],
    [3, { list: [{ text: 'event' }] }],
    [4, i32(codec)],
    [5, { i64: rows }],
    [6, { i64: body.length }],
    [7, { i64: body.length }],
    [9, { i64: 4 }],
  ]
  const footer = thriftBytes([
    [1, i32(1)],
    [
      2,
      {
        list: [
          struct([4, { text: 'schema' }], [5, i32(1)]),
          struct([1, i32(6)], [3, i32(isOptional ? 1 : 0)], [4, { text: 'event' }]),
        ],
      },
    ],
    [3, { i64: rows }],
    [
      4,
      {
        list: [
          struct(
            [1, { list: [struct([2, { i64: 4 }], [3, { struct: chunk }])] }],
            [2, { i64: body.length }],
            [3, { i64: rows }],
          ),
        ],
      },
    ],
  ])
  const length = Buffer.alloc(4)
  length.writeUInt32LE(footerBytes ?? footer.length)
  return Buffer.concat([Buffer.from('PAR1'), body, footer, length, Buffer.from('PAR1')])
}

const zeros = (bytes: number): Uint8Array => Bun.zstdCompressSync(new Uint8Array(bytes))
const bytesOf = (...bytes: number[]): Uint8Array => Uint8Array.from(bytes)
/** One run of 2^31 - 1 times the value 0. */
const endlessRun = [0xfe, 0xff, 0xff, 0xff, 0x0f, 0]
const text = (value: string): Uint8Array =>
  Buffer.concat([Buffer.from([value.length, 0, 0, 0]), Buffer.from(value)])

const files: { [caseName: string]: [file: File, why: string] } = {
  'a page that claims 2 GiB': [
    { pages: [{ size: 2 ** 31 - 1, packed: zeros(mib), values: 1 }] },
    'a page is larger than 128 MiB',
  ],
  'the same in Snappy': [
    { pages: [{ size: 2 ** 31 - 1, packed: bytesOf(1, 0), values: 1 }], codec: snappy },
    'a page is larger than 128 MiB',
  ],
  'a page that is larger than it claims': [
    { pages: [{ size: 100, packed: zeros(256 * mib), values: 1 }] },
    'column "event"',
  ],
  'the same in gzip': [
    { pages: [{ size: 100, packed: gzipSync(new Uint8Array(64 * mib)), values: 1 }], codec: gzip },
    'column "event"',
  ],
  'a packed size beyond the file': [
    { pages: [{ size: 100, packed: zeros(100), packedSize: 2 ** 30, values: 1 }] },
    'a page is larger than 128 MiB',
  ],
  'two billion values': [
    { pages: [{ size: mib, packed: zeros(mib), values: 2 ** 31 - 1 }] },
    'more than 4194304 values',
  ],
  'more values than bytes': [
    { pages: [{ size: 8, packed: bytesOf(0, 0, 0, 0, 0, 0, 0, 0), values: 4e6 }], codec: uncompressed },
    'ends before its last value',
  ],
  'a dictionary with more values than bytes': [
    {
      pages: [{ kind: dictionaryPage, size: 4, packed: bytesOf(0, 0, 0, 0), values: 4e6 }],
      codec: uncompressed,
    },
    'ends before its last value',
  ],
  'a text of 4 GiB': [
    { pages: [{ size: 5, packed: bytesOf(255, 255, 255, 255, 1), values: 1 }], codec: uncompressed },
    'ends before its last value',
  ],
  'an endless run of levels': [
    {
      pages: [{ size: 10, packed: bytesOf(6, 0, 0, 0, ...endlessRun), values: 4e6 }],
      codec: uncompressed,
      isOptional: true,
    },
    'values that are not strings',
  ],
  'levels of the second version that are larger than the page': [
    {
      pages: [{ kind: dataPageV2, size: 10, packed: bytesOf(6, 0, 0, 0, ...endlessRun), values: 9 }],
      codec: uncompressed,
      isOptional: true,
    },
    'larger than the page',
  ],
  'a code that is not in the dictionary': [
    {
      pages: [
        { kind: dictionaryPage, size: 5, packed: text('a'), values: 1 },
        { size: 3, packed: bytesOf(4, 2, 7), values: 1, encoding: rleDictionary },
      ],
      codec: uncompressed,
    },
    'not in the dictionary',
  ],
  'lengths that are negative': [
    {
      pages: [{ size: 5, packed: bytesOf(128, 1, 4, 1, 1), values: 1, encoding: deltaLength }],
      codec: uncompressed,
    },
    'ends before its last value',
  ],
  'a block of no values': [
    {
      pages: [{ size: 4, packed: bytesOf(0, 0, 9, 0), values: 4e6, encoding: deltaBytes }],
      codec: uncompressed,
    },
    'column "event"',
  ],
  'an event beyond the limit of a request': [
    {
      pages: [
        {
          size: 4 + 9 * mib,
          packed: Bun.zstdCompressSync(
            Buffer.concat([Buffer.from([0, 0, 0x90, 0]), Buffer.alloc(9 * mib, 32)]),
          ),
          values: 1,
        },
      ],
    },
    'larger than a request may be',
  ],
  'a footer of 4 GiB': [{ pages: [], footerBytes: 2 ** 32 - 1 }, 'footer is larger than 16 MiB'],
  'a column that ends early': [
    { pages: [{ size: 5, packed: text('a'), values: 1 }], codec: uncompressed },
    'it ends before its last value',
  ],
}

/** Reads the files in a process of its own, and returns what it says about each and how much memory it took. */
async function readAll(paths: string[]): Promise<{ said: string[]; peakMiB: number }> {
  const program = join(import.meta.dir, '../../tests/support/parquet-reader.ts')
  const child = run([process.execPath, program, ...paths], { cwd: import.meta.dir, env: {}, asUsers: true })
  expect(await child.exited).toBe(0)
  const { said: messages, peakBytes } = JSON.parse(child.stdout()) as { said: string[]; peakBytes: number }
  return { said: messages, peakMiB: peakBytes / mib }
}

/** Of two and three values: a header, the first value, the least difference, no bits for the others. */
const deltas = (count: number, first: number, step: number): number[] => [
  128,
  1,
  4,
  count,
  2 * first,
  step < 0 ? -2 * step - 1 : 2 * step,
  0,
  0,
  0,
  0,
]

/** The texts a, ab, abc in the encodings that other programs write. */
const encoded: { [caseName: string]: Omit<File, 'rows'> } = {
  'plain values of an optional column, in gzip': {
    pages: [plainPage(gzipSync, [2, 0, 0, 0, 6, 1])],
    codec: gzip,
    isOptional: true,
  },
  'lengths first': {
    pages: [deltaPage(deltaLength, [...deltas(3, 1, 1), ...Buffer.from('aababc')])],
    codec: uncompressed,
  },
  'only what differs from the value before': {
    pages: [deltaPage(deltaBytes, [...deltas(3, 0, 1), ...deltas(3, 1, 0), ...Buffer.from('abc')])],
    codec: uncompressed,
  },
  'packed codes of a dictionary, and a run of one value': {
    pages: [
      { kind: dictionaryPage, ...sized(Buffer.concat([text('abc'), text('a'), text('ab')])), values: 3 },
      { ...sized(bytesOf(2, 3, 0b1001, 0)), values: 2, encoding: rleDictionary },
      { ...sized(bytesOf(2, 8, 0)), values: 1, encoding: rleDictionary },
    ],
    codec: uncompressed,
  },
}

function sized(packed: Uint8Array): { size: number; packed: Uint8Array } {
  return { size: packed.length, packed }
}

function plainPage(pack: (bytes: Uint8Array) => Uint8Array, levels: number[]): Page {
  const bytes = Buffer.concat([Uint8Array.from(levels), ...['a', 'ab', 'abc'].map(text)])
  return { size: bytes.length, packed: pack(bytes), values: 3 }
}

function deltaPage(encoding: number, bytes: number[]): Page {
  return { ...sized(Uint8Array.from(bytes)), values: 3, encoding }
}

test.each(Object.entries(encoded))('%s are read', async (_, file) => {
  using folder = tempDir('parquet-encodings')
  const path = join(folder.path, 'a.parquet')
  writeFileSync(path, fileOf({ ...file, rows: 3 }))
  const eventTexts: string[] = []
  for await (const event of (await openParquetEvents(path))!.events()) eventTexts.push(event)
  expect(eventTexts).toEqual(['a', 'ab', 'abc'])
})

test('each is refused with its reason, and takes no more memory than a page', async () => {
  using folder = tempDir('parquet-hostile')
  const namedFiles = Object.entries(files)
  const paths = namedFiles.map(([, [file]], n) => {
    const path = join(folder.path, `${n}.parquet`)
    writeFileSync(path, fileOf(file))
    return path
  })
  const { said: messages, peakMiB } = await readAll(paths)
  for (const [n, [caseName, [, reason]]] of namedFiles.entries()) {
    expect([caseName, messages[n]]).toEqual([caseName, expect.stringContaining(reason)])
    expect(messages[n]).toStartWith(paths[n]!)
  }
  expect(peakMiB).toBeLessThan(200)
})

test('a row group of 1.5 GiB in 150 KiB, and a million copies of one event, are read page by page', async () => {
  using folder = tempDir('parquet-bomb')
  const page = { size: 64 * mib, packed: zeros(64 * mib), values: 1 }
  const large = join(folder.path, 'large.parquet')
  writeFileSync(large, fileOf({ pages: Array.from({ length: 24 }, () => page), rows: 24 }))
  const copies = join(folder.path, 'copies.parquet')
  const event = `{"id":"${'x'.repeat(200)}"}`
  const pages = [
    { kind: dictionaryPage, size: 4 + event.length, packed: text(event), values: 1 },
    { size: 7, packed: bytesOf(1, ...endlessRun), values: 1e6, encoding: rleDictionary },
  ]
  writeFileSync(copies, fileOf({ pages, codec: uncompressed, rows: 1e6 }))
  const { said: messages, peakMiB } = await readAll([large, copies])
  expect(messages).toEqual(['24 events', '1000000 events'])
  // The program takes 70 MiB and a page 64. Pages or parts of them that await a collection take 210 to 620.
  expect(peakMiB).toBeLessThan(200)
})
