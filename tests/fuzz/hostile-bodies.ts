/**
 * Every hostile body that we know, with the door it is sent to: bodies of tiny repeated parts, of brackets, of blanks,
 * of one long text. Add a body here when a new one is heard of; `hostile-bodies.test.ts` holds the law over all.
 */
import { exampleEvent } from '../support/events.ts'
import { otlpBodies } from './hostile-otlp.ts'
import { bytesMax, filled, inJson, type HostileBody } from './hostile-parts.ts'

const events = { key: 'ingest', type: 'application/json', path: '/v1/sdk/events' } as const
const lines = { ...events, type: 'application/x-ndjson' } as const

const eventsMax = 1_000
const eventBytes = 7_800

/** The most events of a request, with ids that differ, each with text in front of its last bracket. */
function eventTexts(extraMembers: string): string[] {
  return Array.from({ length: eventsMax }, (_, index) =>
    JSON.stringify({ ...exampleEvent, id: `hostile_${index}_${Bun.hash(extraMembers)}` }).replace(
      /\}$/,
      `,${extraMembers}}`,
    ),
  )
}

const repeated = (prefix: string, part: string, last: string, suffix: string): string =>
  inJson(prefix, part, last, suffix, eventBytes).toString()

const shapes: { [shape: string]: string } = {
  'a long text': repeated('"more":"', 'x', '', '"'),
  'a long text that is not Latin': repeated('"more":"', '語', '', '"'),
  'a text of escapes': repeated('"more":"', '\\u00e9', '', '"'),
  'empty lists': repeated('"more":[', '[],', '[]', ']'),
  'empty objects': repeated('"more":[', '{},', '{}', ']'),
  'long numbers': repeated('"more":[', '12345678901234567890,', '0', ']'),
  zeros: repeated('"more":[', '0,', '0', ']'),
  'many fields': `"more":{${Array.from({ length: 700 }, (_, index) => `"f${index}":0`).join(',')}}`,
  'equal fields': repeated('', '"more":0,', '"more":0', ''),
  blanks: repeated('"more":', ' ', '', '0'),
  'deep lists': `"more":${'['.repeat(3_900)}${']'.repeat(3_900)}`,
}

const eventBodies: HostileBody[] = [
  ...Object.entries(shapes).flatMap(([shape, text]): HostileBody[] => [
    {
      ...events,
      name: `1,000 events with ${shape}`,
      bytes: () => Buffer.from(`{"events":[${eventTexts(text).join(',')}]}`),
      statuses: [202, 400],
    },
    {
      ...lines,
      name: `NDJSON: 1,000 events with ${shape}`,
      bytes: () => Buffer.from(eventTexts(text).join('\n')),
      statuses: [202, 400],
    },
  ]),
  {
    ...events,
    name: '1,000 events, all refused',
    bytes: () =>
      Buffer.from(
        `{"events":[${eventTexts(shapes['a long text']!).join(',').replaceAll('"type":"', '"type":"Not A ')}]}`,
      ),
    statuses: [400],
  },
  { ...events, name: '8 MB of brackets', bytes: () => filled('[', bytesMax), statuses: [400] },
  {
    ...events,
    name: '8 MB of brackets in a field',
    bytes: () => inJson('{"a":', '[', '', '}', bytesMax),
    statuses: [400],
  },
  {
    ...events,
    name: '2 million empty lists beside the events',
    bytes: () => inJson(`{"events":[${eventTexts('"a":0')[0]}],"more":[`, '[],', '[]', ']}', bytesMax),
    statuses: [202, 400],
  },
  {
    ...events,
    name: '2 million empty events',
    bytes: () => inJson('{"events":[', '{},', '{}', ']}', bytesMax),
    statuses: [413],
  },
  {
    ...events,
    name: '1 million fields beside the events',
    bytes: () => inJson(`{"events":[${eventTexts('"a":0')[0]}],`, '"x":0,', '"y":0', '}', bytesMax),
    statuses: [400],
  },
  { ...events, name: '8 MB of blanks', bytes: () => filled(' ', bytesMax), statuses: [400] },
  {
    ...events,
    name: '8 MB of escaped quotes',
    bytes: () => inJson('{"a":"', '\\"', '', '"}', bytesMax),
    statuses: [400],
  },
  { ...lines, name: 'NDJSON: 8 MB of blank lines', bytes: () => filled('\n', bytesMax), statuses: [400] },
  { ...lines, name: 'NDJSON: 4 million lines', bytes: () => filled('0\n', bytesMax), statuses: [413] },
  {
    ...lines,
    name: 'NDJSON: 1,000 lines that are not UTF-8',
    bytes: () => filled(Buffer.concat([Buffer.alloc(8_000, 0xff), Buffer.from('\n')]), 1_000 * 8_001),
    statuses: [400],
  },
  {
    ...lines,
    name: 'NDJSON: one line of brackets',
    bytes: () => filled('[', bytesMax),
    statuses: [400],
  },
]

const fill = (unit: string): string => unit.repeat(Math.floor((bytesMax - 100) / unit.length))

/** Texts that cost a parser much, as bodies of events in either form. */
export const costlyTexts: { [name: string]: string } = {
  'open arrays': fill('['),
  'open objects': fill('{"a":'),
  'empty arrays': `{"events":[{"x":[${fill('[],')}1]}]}`,
  'empty objects as events': `{"events":[${fill('{},')}1]}`,
  'numbers as events': `{"events":[${fill('1,')}1]}`,
  'one giant string': `{"events":["${fill('x')}"]}`,
  'one giant number': `{"events":[{"n":${fill('1')}}]}`,
  backslashes: `{"events":["${fill('\\\\')}"]}`,
  'escaped NULs': `{"events":[{"x":"${fill('\\u0000')}"}]}`,
  'escaped backslashes before u0000': `{"events":[{"x":"${fill('\\\\u0000')}"}]}`,
  'many members': `{${Array.from({ length: 500_000 }, (_, index) => `"k${index}":1`).join()}}`,
  'lists named events': `{${fill('"events":[1],')}"events":[1]}`,
  'blank lines': fill('\n'),
  'short lines': fill('1\n'),
  spaces: fill(' '),
  quotes: fill('"'),
  'deep lines': `${`${'['.repeat(32_000)}${']'.repeat(32_000)}\n`.repeat(120)}`,
}

const costlyBodies: HostileBody[] = Object.entries(costlyTexts).flatMap(([name, text]) =>
  [events, lines].map((door) => ({
    ...door,
    name: `${door === lines ? 'NDJSON: ' : ''}8 MiB of ${name}`,
    bytes: () => Buffer.from(text),
    statuses: [202, 400, 413],
  })),
)

const access = { key: 'ingest', type: 'text/plain' } as const
const accessPath = (format: string) => `/v1/sdk/access-logs?siteId=hostile&format=${format}`
const agentLine = '192.0.2.7 - - [28/Nov/2026:12:00:00 +0000] "GET /p HTTP/1.1" 200 9 "-" "GPTBot/1.2"\n'
const personLine =
  '192.0.2.7 - - [28/Nov/2026:12:00:00 +0000] "GET /p HTTP/1.1" 200 9 "-" "Mozilla/5.0 Firefox/140"\n'

const accessBodies: HostileBody[] = [
  ['8 million empty lines', accessPath('combined'), '\n'],
  ['4 million bad lines', accessPath('combined'), 'a\n'],
  ['8 MB of NUL', accessPath('combined'), '\0'],
  ['lines of agents', accessPath('combined'), agentLine],
  ['lines of people', accessPath('combined'), personLine],
  ['4 million lines of JSON', accessPath('caddy'), '0\n'],
  ['lines of JSON of empty lists', accessPath('caddy'), `${inJson('{"a":[', '[],', '[]', ']}', 60_000)}\n`],
  ['lines of JSON of fields', accessPath('caddy'), `${inJson('{', '"a":0,', '"b":0', '}', 60_000)}\n`],
  ['lines of JSON of brackets', accessPath('caddy'), `{"a":${'['.repeat(60_000)}\n`],
  ['lines of quotes', accessPath('combined'), `${'" '.repeat(20_000)}\n`],
  ['headings of the extended format', accessPath('w3c'), '#Fields: time c-ip\n'],
].map(([name, path, part]) => ({
  ...access,
  name: `access log: ${name}`,
  path: path!,
  bytes: () => filled(part!, bytesMax),
  statuses: [202, 400],
}))

const push = { key: 'ingest', type: 'application/json' } as const
const toolsOf = (tool: string, count: number): Buffer => {
  const tools = Array.from({ length: count }, (_, index) => tool.replace('#', String(index)))
  return Buffer.from(`{"siteId":"hostile","tools":[${tools.join(',')}]}`)
}

const pushBodies: HostileBody[] = [
  ...Object.entries(shapes).map(([shape, text]) => ({
    ...push,
    name: `1,000 tools with ${shape}`,
    path: '/v1/sdk/tools',
    bytes: () => toolsOf(`{"name":"hostile#","inputSchema":{${text}}}`, 1_000),
    statuses: [202, 400],
  })),
  {
    ...push,
    name: '2 million empty tools',
    path: '/v1/sdk/tools',
    bytes: () => inJson('{"siteId":"hostile","tools":[', '{},', '{}', ']}', bytesMax),
    statuses: [400],
  },
  ...[
    ['a long text', '"more":"', 'x', '', '"'],
    ['a text of escapes', '"more":"', '\\u00e9', '', '"'],
    ['2 million empty lists', '"more":[', '[],', '[]', ']'],
    ['2 million empty objects', '"more":[', '{},', '{}', ']'],
    ['long numbers', '"more":[', '12345678901234567890,', '0', ']'],
    ['4 million zeros', '"more":[', '0,', '0', ']'],
    ['equal fields', '', '"more":0,', '"more":0', ''],
    ['8 MB of blanks', '"more":', ' ', '', '0'],
    ['400,000 lists with a text of surrogates', '"x":"\\ud83d\\ude00","more":[', '[],           ', '[]', ']'],
  ].map(([name, prefix, part, last, suffix]) => ({
    ...push,
    name: `site memory: ${name}`,
    path: '/v1/sdk/memory',
    bytes: () => inJson(`{"siteId":"hostile","snapshot":{${prefix}`, part!, last!, `${suffix}}}`, bytesMax),
    statuses: [202, 400],
  })),
  {
    ...push,
    name: 'site memory: 500,000 fields',
    path: '/v1/sdk/memory',
    bytes: () =>
      Buffer.from(
        `{"siteId":"hostile","snapshot":{${Array.from({ length: 500_000 }, (_, index) => `"f${index}":0`).join(',')}}}`,
      ),
    statuses: [202, 400],
  },
]

/** Bodies for routes that take at most 64 KiB of JSON. */
export const smallShapes: { [shape: string]: Buffer } = {
  brackets: filled('[', 64_000),
  'brackets in a field': inJson('{"a":', '[', '', '}', 64_000),
  'objects in objects': filled('{"a":', 64_000),
  'closed brackets in a field': Buffer.from(`{"a":${'['.repeat(32_000)}${']'.repeat(32_000)}}`),
  'empty lists in a field': inJson('{"a":[', '[],', '[]', ']}', 64_000),
  'equal fields': inJson('{', '"a":0,', '"a":0', '}', 64_000),
}

const mcpBodies: HostileBody[] = [
  ['brackets', filled('[', 64_000)],
  ['objects in objects', filled('{"a":', 64_000)],
  ['a batch of 20,000 messages', inJson('[', '{},', '{}', ']', 64_000)],
  [
    'a call with 20,000 lists',
    inJson(
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":[',
      '[],',
      '[]',
      ']}}}',
      64_000,
    ),
  ],
].map(([name, bytes]) => ({
  key: 'secret',
  type: 'application/json',
  name: `MCP: ${String(name)}`,
  path: '/mcp',
  bytes: () => bytes as Buffer,
  statuses: [200, 400],
}))

export const hostileBodies: readonly HostileBody[] = [
  ...otlpBodies,
  ...eventBodies,
  ...costlyBodies,
  ...accessBodies,
  ...pushBodies,
  ...mcpBodies,
]
