/** Bench of Explore: what its queries read and how long they take, beside parsing every text, in the same run. */
import { openReaderConnection, openWriterConnection } from '../../db/sqlite/file/connection.ts'
import { databasePath } from '../../db/sqlite/file/files.ts'
import { idsInRuns } from '../../db/sql/events/ids-in-runs.ts'
import { compactEventReader } from '../../db/sql/events/reader.ts'
import { compactEventWriter } from '../../db/sql/events/writer.ts'
import { openBodies, openNames } from '../../db/sql/events/blocks/texts.ts'
import { joinText } from '../../db/rules/event-record.ts'
import { extra, openBlock, placeOf, segmentEvents } from '../../db/sql/events/blocks/block.ts'
import { readWholeBlocks } from '../../db/sql/events/blocks/block-table.ts'
import { atOnce, beginSlice } from '../../db/sql/slices.ts'
import { openStore } from '../../db/open.ts'
import type { Explored, ExploreQuery } from '../../db/contract/explore.ts'
import type { EventRecord, Store } from '../../db/contract/store.ts'
import { tempDir } from '../support/temp-dir.ts'
import { eventSource, startMs } from './engine-events.ts'
import { recordTable, table } from './report.ts'

const help = `Fills a store at 13,900 events an hour, explores it by fields and by members of the metadata on one
connection without threads, from the texts and from the path columns, and compares with parsing the text of every event.

  --events N   as many as you say; 1,000,000 unless given
  --write      replaces the section in tests/bench/results.md`

const hourMs = 3_600_000
const seqsPerOrg = placeOf(1, 0)
export const orgId = 'org_explore'
export const plans = ['pro', 'free', 'team', 'enterprise'] as const

type Asked = Pick<ExploreQuery, 'measure' | 'by'> & Partial<ExploreQuery>

/** What one query took and read. */
export interface Asking {
  name: string
  ms: number
  blocks: number // whose columns were read
  texts: number // blocks whose texts were read
  found: Explored
}

interface ExploreBench {
  events: number
  parseMs: number // reading and parsing every text
  pathsMs: number // making the path columns
  texts: Asking[]
  columns: Asking[]
}

function withPlan(eventRecord: EventRecord, n: number): EventRecord {
  const event = JSON.parse(eventRecord.json) as { metadata: object }
  const metadata = { ...event.metadata, plan: plans[n % plans.length], cart: { items: n % 7 } }
  return { ...eventRecord, json: JSON.stringify({ ...event, metadata }) }
}

const batchEvents = 1_000

export async function fill(store: Store, total: number): Promise<void> {
  const source = eventSource(10_000_000)
  for (let n = 0; n < total; n += batchEvents) {
    const events = Array.from({ length: batchEvents }, (_, index) =>
      withPlan(source.event(n + index), n + index),
    )
    const receivedAtMs = events.reduce((last, { occurredAtMs }) => Math.max(last, occurredAtMs), 0)
    await store.events.append({ orgId, keyId: 'key_bench', door: 'events', receivedAtMs, events })
  }
}

const hours = (from: number, until: number): number[] =>
  Array.from({ length: until - from + 1 }, (_, hour) => startMs + (from + hour) * hourMs)

export function questions(total: number): { [name: string]: Asked } {
  const edges = hours(-1, Math.ceil(total / 13_900) + 1)
  const last = hours(Math.max(0, edges.length - 27), edges.length - 2)
  return {
    'events by vendor, whole hours': { measure: 'events', by: 'vendor', edges },
    'events by vendor, of one class': {
      measure: 'events',
      by: 'vendor',
      edges,
      filter: { classes: ['dom'] },
    },
    'sessions by vendor': { measure: 'sessions', by: 'vendor', edges },
    'p95 by tool': { measure: 'p95', by: 'tool', edges },
    'events by metadata.plan': { measure: 'events', by: { metadata: 'plan' }, edges },
    'the same, another measure': { measure: 'sessions', by: { metadata: 'plan' }, edges },
    'events by metadata.cart.items, 24 h': { measure: 'events', by: { metadata: 'cart.items' }, edges: last },
    'events by metadata.plan, of a rare vendor': {
      measure: 'events',
      by: { metadata: 'plan' },
      edges,
      filter: { vendors: ['Rare-Agent'] },
    },
  }
}

/** Makes the path columns of sealed segments, without threads. Returns how long it took. */
export function makePaths(folder: string): number {
  using db = openWriterConnection(databasePath(folder), () => {})
  const writer = compactEventWriter(db)
  const startedMs = performance.now()
  while (writer.spare());
  return performance.now() - startedMs
}

/** A reader on a connection of its own, which counts the blobs that it reads. */
export function openExplorer(folder: string) {
  const db = openReaderConnection(databasePath(folder))
  const read = { blocks: 0, texts: 0 }
  const query = db.query.bind(db)
  const counting = (sql: string) => {
    const statement = query(sql)
    const blobKind = /^SELECT (?:ids|bodies) AS blob/.test(sql)
      ? 'texts'
      : sql.startsWith('SELECT columns FROM')
        ? 'blocks'
        : null
    if (blobKind === null) return statement
    return { ...statement, get: (...values: never[]) => (read[blobKind]++, statement.get(...values)) }
  }
  const reader = compactEventReader(Object.assign(db, { query: counting as typeof db.query }), idsInRuns(db))
  return {
    ask(name: string, question: Asked): Asking {
      const readBefore = { ...read }
      beginSlice(Infinity)
      const started = performance.now()
      const exploration = atOnce(
        reader.explore({ orgId, filter: {}, edges: [], rowsMax: 10, budgetMs: Infinity, ...question }),
      )
      const ms = performance.now() - started
      return {
        name,
        ms,
        blocks: read.blocks - readBefore.blocks,
        texts: read.texts - readBefore.texts,
        found: exploration,
      }
    },
    /** The floor: every text, read and parsed. */
    parseAll(): number {
      const started = performance.now()
      let bytes = 0
      for (const { columns, ids, bodies } of readWholeBlocks(db, 0, Number.MAX_SAFE_INTEGER)) {
        const opened = openBlock(columns)
        const texts = openBodies(bodies, opened.rows)
        const names = openNames(ids, opened.rows)
        for (let row = 0; row < opened.rows; row++) {
          const idAt = opened.value(extra.idAt, row)
          const sessionAt = opened.value(extra.sessionAt, row)
          const json = joinText({ text: texts.text(row), idAt, sessionAt }, names.id(row), names.session(row))
          const { metadata } = JSON.parse(json) as { metadata: { plan: string } }
          bytes += metadata.plan.length
        }
      }
      return bytes > 0 ? performance.now() - started : 0
    },
    /** Blocks that no segment covers: their members are read from their texts. */
    unsealed(): number {
      const sql = `SELECT count(*) AS blocks FROM event_block WHERE place % ${seqsPerOrg} >= (
        SELECT max(segments) * ${segmentEvents} FROM event_org)`
      return db.query<{ blocks: number }, []>(sql).get()!.blocks
    },
    close: () => db.close(),
  }
}

async function exploreBench(total: number): Promise<ExploreBench> {
  using dir = tempDir('explore-bench')
  const folder = dir.join('data')
  const store = await openStore({ folder, now: startMs, readers: 1, readDeadlineMs: 60_000 })
  await fill(store, total)
  await store.close()
  const explorer = openExplorer(folder)
  const namedQuestions = Object.entries(questions(total))
  const round = () => namedQuestions.map(([name, question]) => explorer.ask(name, question))
  const texts = round()
  const parseMs = explorer.parseAll()
  const pathsMs = makePaths(folder)
  const columns = round()
  explorer.close()
  return { events: total, parseMs, pathsMs, texts, columns }
}

function exploreTable({ events, parseMs, pathsMs, texts, columns }: ExploreBench): string {
  const ms = (value: number) => Math.round(value * 10) / 10
  const rows = texts.map(({ name, ...figures }, index) => {
    const from = columns[index]!
    return [name, ms(figures.ms), figures.blocks, figures.texts, ms(from.ms), from.blocks, from.texts]
  })
  const head = ['query', 'texts ms', 'blocks', 'texts', 'columns ms', 'blocks', 'texts']
  const parsing =
    `${events.toLocaleString('en')} events; reading and parsing every text: ${ms(parseMs)} ms; ` +
    `making the path columns: ${ms(pathsMs)} ms`
  return `${parsing}\n\n${table(head, rows)}`
}

if (import.meta.main) {
  const optionIndex = process.argv.indexOf('--events')
  if (process.argv.includes('--help')) console.log(help)
  else {
    const text = exploreTable(
      await exploreBench(optionIndex < 0 ? 1_000_000 : Number(process.argv[optionIndex + 1])),
    )
    console.log(text)
    if (process.argv.includes('--write')) recordTable('Explore', text)
  }
}
