/**
 * `bun tests/fuzz/otlp-mutations.ts --full`: decodes and maps a million mutated requests in protobuf and JSON. Each
 * is accepted or refused with a 400; nothing else is thrown, none takes long, and the memory stays.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { AppError } from '../../server/errors.ts'
import genAi from '../../server/otlp/fixtures/composed/gen-ai.json'
import mcp from '../../server/otlp/fixtures/composed/mcp.json'
import { logMapping, spanMapping, type OtlpRequest } from '../../server/otlp/receive.ts'
import { isRefused } from '../../server/otlp/model.ts'
import type { Fate } from '../../server/otlp/events.ts'
import { validateEvent } from '../../server/ingest/check-event.ts'
import { encoded } from '../support/otlp.ts'

export interface Mutations {
  accepted: number // requests
  refused: number
  events: number
  /** Processor time of the slowest request, and of all. */
  slowestMs: number
  totalMs: number
}

interface Origin {
  body: Uint8Array
  encoding: OtlpRequest['encoding']
  fates(request: OtlpRequest): Generator<Fate>
}

const options = { keep: 'all', content: true } as const

function* spanFates(request: OtlpRequest): Generator<Fate> {
  const { items, map } = spanMapping(request, options)
  for (const item of items()) if (item !== null && !isRefused(item)) yield map(item, 0)
}

function* logFates(request: OtlpRequest): Generator<Fate> {
  const { items, map } = logMapping(request, options)
  for (const item of items()) if (item !== null && !isRefused(item)) yield map(item, 0)
}

const composed = [genAi, mcp].flatMap((request): Origin[] => [
  { body: encoded('Traces', request), encoding: 'protobuf', fates: spanFates },
  { body: Buffer.from(JSON.stringify(request)), encoding: 'json', fates: spanFates },
])

const recordings = join(import.meta.dir, '../../server/otlp/fixtures/recorded')
const recorded = [
  { name: 'claude-code.logs.pb', encoding: 'protobuf', fates: logFates },
  { name: 'codex.logs.pb', encoding: 'protobuf', fates: logFates },
  { name: 'mastra.traces.pb', encoding: 'protobuf', fates: spanFates },
  { name: 'vercel-ai-5.traces.json.gz', encoding: 'json', fates: spanFates },
] as const

const origins: Origin[] = [
  ...composed,
  ...recorded.map(({ name, ...origin }) => {
    const bytes = readFileSync(join(recordings, name))
    return { ...origin, body: name.endsWith('.gz') ? gunzipSync(bytes) : bytes }
  }),
]

/** Mulberry32: the same mutations for the same seed. */
export function randomOf(seed: number): (limit: number) => number {
  let state = seed
  return (limit) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit
  }
}

/** Bytes at which decoders break: the ends of varints, tags, brackets and quotes. */
const edges = [0, 1, 2, 7, 8, 10, 0x0b, 0x0c, 0x7f, 0x80, 0xff, 34, 44, 45, 48, 91, 92, 93, 123, 125]

function mutated(body: Uint8Array, random: (limit: number) => number): Uint8Array {
  let bytes = Uint8Array.from(body)
  for (let editsLeft = 1 + random(4); editsLeft > 0; editsLeft--) {
    const position = random(bytes.length)
    const kind = random(6)
    if (kind === 0) bytes[position] = random(256)
    else if (kind === 1) bytes[position] = edges[random(edges.length)]!
    else if (kind === 2) bytes[position]! ^= 1 << random(8)
    else if (kind === 3) bytes = bytes.slice(0, Math.max(1, position))
    else if (kind === 4)
      bytes = Uint8Array.from([...bytes.slice(0, position), ...bytes.slice(position + 1 + random(8))])
    else
      bytes = Uint8Array.from([
        ...bytes.slice(0, position),
        ...bytes.slice(random(bytes.length), position + 40),
      ])
    if (bytes.length === 0) return Uint8Array.from([random(256)])
  }
  return bytes
}

export function runMutations(count: number, seed: number, step?: (stepCount: number) => void): Mutations {
  const random = randomOf(seed)
  const sum: Mutations = { accepted: 0, refused: 0, events: 0, slowestMs: 0, totalMs: 0 }
  for (let n = 0; n < count; n++) {
    const { body, encoding, fates } = origins[n % origins.length]!
    const request = { body: mutated(body, random), encoding } as OtlpRequest
    const started = process.cpuUsage()
    try {
      for (const fate of fates(request)) {
        if (fate.kind !== 'mapped') continue
        // What the checks of ingest refuse is counted; they must never throw.
        for (const event of fate.events) if (validateEvent(event, [], true, []) !== null) sum.events++
      }
      sum.accepted++
    } catch (error) {
      if (!(error instanceof AppError) || error.status !== 400) {
        throw new Error(`mutation ${n} of seed ${seed}: ${String(error)}`, { cause: error })
      }
      sum.refused++
    }
    const { user, system } = process.cpuUsage(started)
    const usedMs = (user + system) / 1_000
    sum.slowestMs = Math.max(sum.slowestMs, usedMs)
    sum.totalMs += usedMs
    if (n % 10_000 === 0) step?.(n)
  }
  return sum
}

if (import.meta.main) {
  const count = process.argv.includes('--full') ? 1_000_000 : 20_000
  const seed = Date.now() % 1_000_000
  runMutations(5_000, 1)
  Bun.gc(true)
  const memoryBefore = process.memoryUsage.rss()
  let highest = memoryBefore
  const sum = runMutations(count, seed, () => (highest = Math.max(highest, process.memoryUsage.rss())))
  const times = (highest / memoryBefore).toFixed(2)
  console.log(
    `seed ${seed}: ${count} mutated requests, ${JSON.stringify(sum)}, memory ${times} times that before`,
  )
}
