/** Encodes events as a Parquet file: a column per known field, and the whole event as it was sent. */
import { textFields, impliedDecision } from '../../db/contract/event-fields.ts'
import { numbers, physical, plainTexts, repeatedTexts, times, type Chunk } from './columns.ts'
import type { Provenance } from '../../db/contract/store.ts'
import { thriftBytes, type ThriftField, type ThriftStruct } from './thrift.ts'

/** The version of the columns, in the footer and in manifests. Raised when a column changes its meaning. */
export const parquetSchema = 1

/** A row group ends at either. Pages are compressed as they fill, so it takes about 20 MiB of memory. */
export const rowGroup = { rowsMax: 100_000, eventBytesMax: 64 * 1024 * 1024 }

export interface EventRow {
  json: string
  occurredAtMs: number
  receivedAtMs: number
  provenance?: Provenance | undefined // who says so
}

export interface EventEncoder {
  /** Bytes of the file that follow those returned before; most calls return none. */
  add(row: EventRow): Uint8Array[]
  /** The rest of the file. The encoder cannot be used after. */
  end(): Uint8Array[]
  bytes(): number
}

interface Path {
  name: string
  first: string
  second: string | undefined
}

/** `siteId` is `site`, `ruleId` is `rule_id`, `agent.class` is `agent_class`. */
const columnName = (name: string, path: readonly string[]): string => {
  if (path[0] === 'agent') return `agent_${path[1]}`
  if (name === 'siteId' || name === 'sessionId') return name.slice(0, -'Id'.length)
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

const textPaths: readonly Path[] = [
  ...textFields.map(({ name, path }) => ({ name: columnName(name, path), path })),
  { name: 'error', path: ['error'] },
].map(({ name, path }) => ({ name, first: path[0]!, second: path[1] }))

/** Facts of the record, which are not in the event's text. */
const recordColumns: readonly [column: string, field: keyof Provenance][] = [
  ['door', 'door'],
  ['key', 'key'],
  ['observed_by', 'observedBy'],
  ['judged_by', 'judgedBy'],
  ['evidence', 'evidence'],
  ['network', 'network'],
]

const kinds = {
  text: { type: physical.bytes, converted: 0, logical: { struct: [[1, { struct: [] }]] } },
  time: {
    type: physical.int64,
    converted: 9,
    logical: {
      struct: [
        [
          8,
          {
            struct: [
              [1, { bool: true }],
              [2, { struct: [[1, { struct: [] }]] }],
            ],
          },
        ],
      ],
    },
  },
  number: { type: physical.double, converted: undefined, logical: undefined },
} as const

interface ColumnForm {
  name: string
  kind: keyof typeof kinds
  isRequired: boolean
}

const required = (name: string, kind: ColumnForm['kind']): ColumnForm => ({ name, kind, isRequired: true })
const optional = (name: string, kind: ColumnForm['kind']): ColumnForm => ({ name, kind, isRequired: false })

const forms: readonly ColumnForm[] = [
  required('id', 'text'),
  optional('org', 'text'),
  required('occurred_at', 'time'),
  required('received_at', 'time'),
  optional('duration_ms', 'number'),
  ...textPaths.map(({ name }) => optional(name, 'text')),
  ...recordColumns.map(([name]) => optional(name, 'text')),
  required('event', 'text'),
]

export const parquetColumns: readonly string[] = forms.map(({ name }) => name)

const magic = Buffer.from('PAR1')

interface Group {
  rows: number
  at: number
  chunks: { chunk: Chunk; at: number }[]
}

/** `limits` are of a row group; tests use smaller ones. */
export function eventEncoder(orgId: string, createdBy: string, limits = rowGroup): EventEncoder {
  const fill = rowColumns(orgId, limits.rowsMax)
  const groups: Group[] = []
  let offset = 0
  let rows = 0
  let eventBytes = 0

  function append(bytes: Uint8Array[]): Uint8Array[] {
    for (const part of bytes) offset += part.length
    return bytes
  }

  function endGroup(): Uint8Array[] {
    const start = offset
    const parts: Uint8Array[] = []
    const chunks = fill.end().map((chunk) => {
      const chunkStart = offset
      parts.push(...append(chunk.pages))
      return { chunk: { ...chunk, pages: [] }, at: chunkStart }
    })
    groups.push({ rows, at: start, chunks })
    rows = eventBytes = 0
    return parts
  }

  const begin = (): Uint8Array[] => (offset === 0 ? append([magic]) : [])

  return {
    bytes: () => offset,
    add(row) {
      fill.add(row)
      rows++
      eventBytes += row.json.length
      if (rows < limits.rowsMax && eventBytes < limits.eventBytesMax) return []
      return [...begin(), ...endGroup()]
    },
    end() {
      const parts = [...begin(), ...(rows > 0 ? endGroup() : [])]
      const footer = thriftBytes(fileMetadata(groups, createdBy))
      const length = Buffer.alloc(4)
      length.writeUInt32LE(footer.length)
      return [...parts, ...append([footer, length, magic])]
    },
  }
}

interface Fields {
  [name: string]: unknown
}

/** The columns of the present row group, in the order of `forms`. */
function rowColumns(orgId: string, rowsMax: number) {
  const id = plainTexts()
  const org = repeatedTexts(rowsMax)
  const event = plainTexts()
  const occurred = times(rowsMax)
  const received = times(rowsMax)
  const duration = numbers(rowsMax)
  const texts = textPaths.map((path) => ({ ...path, column: repeatedTexts(rowsMax) }))
  const records = recordColumns.map(([, field]) => ({ field, column: repeatedTexts(rowsMax) }))
  return {
    add({ json, occurredAtMs, receivedAtMs, provenance }: EventRow): void {
      const fields = JSON.parse(json) as Fields
      id.add(String(fields['id']))
      org.add(orgId)
      occurred.add(occurredAtMs)
      received.add(receivedAtMs)
      const durationMs = fields['durationMs']
      duration.add(typeof durationMs === 'number' ? durationMs : null)
      for (const { name, first, second, column } of texts) {
        const value =
          second === undefined ? fields[first] : (fields[first] as Fields | null | undefined)?.[second]
        if (name === 'agent_verdict' && provenance !== undefined) column.add(provenance.verdict)
        else if (typeof value === 'string') column.add(value)
        else column.add(name === 'decision' ? implied(fields) : null)
      }
      for (const { field, column } of records) column.add(provenance?.[field] ?? null)
      event.add(json)
    },
    end: () =>
      [
        id,
        org,
        occurred,
        received,
        duration,
        ...[...texts, ...records].map(({ column }) => column),
        event,
      ].map((column) => column.end()),
  }
}

function implied(fields: Fields): string | null {
  return impliedDecision(String(fields['type']), String(fields['outcome']))
}

function fileMetadata(groups: Group[], createdBy: string): ThriftStruct {
  const root: ThriftField = {
    struct: [
      [4, { text: 'events' }],
      [5, { i32: forms.length }],
    ],
  }
  const rows = groups.reduce((sum, group) => sum + group.rows, 0)
  const version = {
    struct: [
      [1, { text: 'sightglass.schema' }],
      [2, { text: String(parquetSchema) }],
    ],
  } as const
  return [
    [1, { i32: 2 }],
    [2, { list: [root, ...forms.map(schemaElement)] }],
    [3, { i64: rows }],
    [4, { list: groups.map(groupMetadata) }],
    [5, { list: [version] }],
    [6, { text: createdBy }],
    // Minima and maxima are in the order of the type.
    [7, { list: forms.map(() => ({ struct: [[1, { struct: [] }]] })) }],
  ]
}

function schemaElement({ name, kind, isRequired }: ColumnForm): ThriftField {
  const { type, converted, logical } = kinds[kind]
  return {
    struct: [
      [1, { i32: type }],
      [3, { i32: isRequired ? 0 : 1 }],
      [4, { text: name }],
      [6, converted === undefined ? undefined : { i32: converted }],
      [10, logical],
    ],
  }
}

const zstd = 6

function groupMetadata({ rows, at: groupStart, chunks }: Group): ThriftField {
  const sum = (field: 'rawBytes' | 'bytes') => chunks.reduce((total, { chunk }) => total + chunk[field], 0)
  return {
    struct: [
      [1, { list: chunks.map(({ chunk, at: start }, index) => chunkMetadata(chunk, start, forms[index]!)) }],
      [2, { i64: sum('rawBytes') }],
      [3, { i64: rows }],
      [5, { i64: groupStart }],
      [6, { i64: sum('bytes') }],
    ],
  }
}

function chunkMetadata(chunk: Chunk, offset: number, { name, kind }: ColumnForm): ThriftField {
  const { nulls, min, max } = chunk.statistics
  const bound = (bytes: Uint8Array | null) => (bytes === null ? undefined : { text: bytes })
  const metadata: ThriftStruct = [
    [1, { i32: kinds[kind].type }],
    [2, { list: chunk.encodings.map((encoding) => ({ i32: encoding })) }],
    [3, { list: [{ text: name }] }],
    [4, { i32: zstd }],
    [5, { i64: chunk.values }],
    [6, { i64: chunk.rawBytes }],
    [7, { i64: chunk.bytes }],
    [9, { i64: offset + (chunk.dictionaryBytes ?? 0) }],
    [11, chunk.dictionaryBytes === null ? undefined : { i64: offset }],
    [
      12,
      {
        struct: [
          [3, { i64: nulls }],
          [5, bound(max)],
          [6, bound(min)],
        ],
      },
    ],
  ]
  return {
    struct: [
      [2, { i64: offset }],
      [3, { struct: metadata }],
    ],
  }
}
