/** What the recorded requests of `fixtures/recorded/` become. */
import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { validateEvent } from '../ingest/check-event.ts'
import type { Issue } from '../errors.ts'
import { logMapping, spanMapping, type OtlpRequest } from './receive.ts'
import type { Fate, MappingOptions } from './events.ts'
import type { Items } from './model.ts'
import { readItems } from '../../tests/support/otlp.ts'

const folder = join(import.meta.dir, 'fixtures/recorded')
const files = readdirSync(folder).filter((name) => !name.endsWith('.md'))
const sources = [...new Set(files.map((name) => name.split('.')[0]!))]

type Fields = { [field: string]: unknown }

function fatesIn(file: string, options: MappingOptions): Fate[] {
  const bytes = readFileSync(join(folder, file))
  const body = file.endsWith('.gz') ? gunzipSync(bytes) : bytes
  const encoding: OtlpRequest['encoding'] = file.includes('.json') ? 'json' : 'protobuf'
  const request = { ...({} as OtlpRequest), body, encoding }
  const map = <Item>({ items, map }: { items(): Items<Item>; map(item: Item, nowMs: number): Fate }) =>
    readItems(items()).map((item) => map(item, 0))
  return file.includes('.logs.') ? map(logMapping(request, options)) : map(spanMapping(request, options))
}

function fatesOf(source: string, options: MappingOptions = { keep: 'agents', content: false }): Fate[] {
  return files.filter((name) => name.startsWith(`${source}.`)).flatMap((name) => fatesIn(name, options))
}

function eventsOf(source: string, options?: MappingOptions): Fields[] {
  const events = fatesOf(source, options).flatMap((fate) => (fate.kind === 'mapped' ? fate.events : []))
  return events.map((event) => {
    const issues: Issue[] = []
    validateEvent(event, [], true, issues)
    expect(issues).toEqual([])
    return JSON.parse(JSON.stringify(event)) as Fields
  })
}

/** Site, type, outcome, tool or decision, agent, and the error: what a table of the convention shows. */
function row({ siteId, type, outcome, tool, agent, policy, error }: Fields): string {
  const { vendor = '', name = '' } = (agent ?? {}) as Fields
  const { decision = '' } = (policy ?? {}) as Fields
  return [siteId, type, outcome, tool ?? '', decision, vendor, name, error ?? ''].join(' | ')
}

const shop = 'shop | '
const claude = 'Anthropic | Claude Code | '
const codex = 'OpenAI | Codex | '

const expected: { [source: string]: { events: string[]; counts: { [kind: string]: number } } } = {
  'claude-code': {
    events: [
      `claude-code | authz.evaluated | success | Bash | allow | ${claude}`,
      `claude-code | tool.executed | success | Bash |  | ${claude}`,
    ],
    counts: { mapped: 2, 'model call': 2, 'left out': 2 },
  },
  // Log records and spans at once: the call counts once, and as failed.
  'claude-code-failed': {
    events: [
      `claude-code | authz.evaluated | success | Bash | allow | ${claude}`,
      `claude-code | tool.executed | error | Bash |  | ${claude}ShellError`,
    ],
    counts: { mapped: 2, 'model call': 4, 'left out': 6 },
  },
  codex: {
    events: [
      `codex_exec | agent.invoked | success |  |  | ${codex}`,
      `codex_exec | authz.evaluated | success | exec_command | allow | ${codex}`,
      `codex_exec | tool.executed | success | exec_command |  | ${codex}`,
    ],
    counts: { mapped: 3, 'model call': 12, 'left out': 4 },
  },
  'gemini-cli': {
    events: ['gemini-cli | tool.executed | success | run_shell_command |  | Google | Gemini CLI | '],
    counts: { mapped: 1, 'model call': 2, 'left out': 1 },
  },
  genkit: {
    events: [
      `${shop}tool.executed | success | get_weather |  |  |  | `,
      `${shop}agent.invoked | success |  |  |  | weatherFlow | `,
    ],
    counts: { mapped: 2, 'model call': 2, 'left out': 2 },
  },
  mastra: {
    events: [
      `${shop}tool.executed | success | get_weather |  |  |  | `,
      `${shop}agent.invoked | success |  |  |  | Weather Agent | `,
    ],
    counts: { mapped: 2, 'model call': 2, 'left out': 6 },
  },
  'openinference-langchain': {
    events: [`${shop}tool.executed | success | get_weather |  |  |  | `],
    counts: { mapped: 1, 'model call': 2, 'left out': 7 },
  },
  'openinference-openai': { events: [], counts: { 'model call': 2 } },
  openllmetry: {
    events: [
      `${shop}tool.executed | success | get_weather |  |  | weather_agent | `,
      `${shop}agent.invoked | success |  |  |  | weather_agent | `,
      `${shop}agent.invoked | success |  |  |  | trip | `,
    ],
    counts: { mapped: 3, 'model call': 2 },
  },
  'opentelemetry-openai': { events: [], counts: { 'model call': 3, 'left out': 6 } },
  'vercel-ai-5': {
    events: [
      `${shop}tool.executed | error | book |  |  | weather-agent | no room left`,
      `${shop}tool.executed | success | get_weather |  |  | weather-agent | `,
    ],
    counts: { mapped: 2, 'model call': 2, 'left out': 1 },
  },
  'vercel-ai-7': {
    events: [
      `${shop}tool.executed | error | book |  |  |  | no room left`,
      `${shop}tool.executed | success | get_weather |  |  |  | `,
      `${shop}agent.invoked | success |  |  | OpenAI | weather-agent | `,
    ],
    counts: { mapped: 3, 'model call': 2, 'left out': 2 },
  },
}

/** Of arguments, results and messages of every recording. */
const contents = ['weather in Paris', 'sunny', '"city', '\\"city', 'echo hi', 'non-interactive CLI agent']

describe.each(sources)('%s', (source) => {
  test('becomes the events that are expected, and no other', () => {
    expect(eventsOf(source).map(row).toSorted()).toEqual(expected[source]!.events.toSorted())
    const kinds = Object.groupBy(fatesOf(source), ({ kind }) => kind)
    const counts = Object.fromEntries(
      Object.entries(kinds).map(([kind, kindFates]) => [kind, kindFates.length]),
    )
    expect(counts).toEqual(expected[source]!.counts)
  })

  test('calls and agents of a run are in one session', () => {
    expect(new Set(eventsOf(source).map(({ sessionId }) => sessionId)).size).toBeLessThanOrEqual(1)
  })

  test('content is stored only on request, also when everything else is', () => {
    const withoutContent = JSON.stringify(eventsOf(source, { keep: 'all', content: false }))
    expect(contents.filter((text) => withoutContent.includes(text))).toEqual([])
  })
})

test('every recording is expected, and the one of a session has its id', () => {
  expect(sources.toSorted()).toEqual(Object.keys(expected))
  const ids = ['vercel-ai-5', 'openinference-langchain', 'openllmetry'].map(
    (source) => eventsOf(source)[0]!['sessionId'],
  )
  expect(ids).toEqual(['chat-1', 'thread-1', 'chat-1'])
  const eventTexts = sources.map((source) => JSON.stringify(eventsOf(source, { keep: 'all', content: true })))
  for (const text of contents.slice(0, 4))
    expect(eventTexts.filter((eventText) => eventText.includes(text))).not.toEqual([])
})
