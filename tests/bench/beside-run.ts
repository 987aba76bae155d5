/** Fills an engine, restarts it and asks it, for the bench beside others. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { hourMs, type Engine, type Question } from './beside-ours.ts'
import type { EventSource } from './engine-events.ts'

const batchEvents = 1_000
const resentBatches = 22
const warmUpBatches = 2
const dayMs = 24 * hourMs
const askMs = 2_500
const repackMs = 45_000
/** Beyond this many events only parts are filled durably, each of at most as many. */
export const durableMax = 1_000_000

export interface Part {
  events: number
  ms: number
  cpuMs: number
}

/** The middle is empty where every batch was measured. */
export interface Filled {
  first: Part
  middle: Part & { batch: number }
  last: Part
  settling: Omit<Part, 'events'>
}

interface Asked {
  firstMs: number
  againMs: number // median
  cpuMs: number // mean of the further ones
  answer: number
}

export function allOf({ first, middle, last, settling }: Filled): Part {
  const totals = { events: 0, ms: settling.ms, cpuMs: settling.cpuMs }
  for (const { events, ms, cpuMs } of [first, middle, last]) {
    totals.events += events
    totals.ms += ms
    totals.cpuMs += cpuMs
  }
  return totals
}

/** As if all sealed events were repacked, where time was left for a share of them. */
export interface Repacked {
  share: number
  bytes: number
  cpuMs: number
}

export interface Found {
  title: string
  filled: Filled | null
  bytes: number
  repacked: Repacked | null
  restartMs: number
  answers: { [Q in keyof Question]: Asked }
  resent: Part | null
}

export const batchAt = (source: EventSource, from: number, events: number) =>
  Array.from({ length: events }, (_, n) => source.event(from + n))

async function measured(engine: Engine, work: () => unknown): Promise<Omit<Part, 'events'>> {
  const children = engine.childSeconds()
  const usageBefore = process.cpuUsage()
  const startedMs = performance.now()
  await work()
  const ms = performance.now() - startedMs
  const { user, system } = process.cpuUsage(usageBefore)
  return { ms, cpuMs: (user + system) / 1_000 + (engine.childSeconds() - children) * 1_000 }
}

/** Making the events is not counted. What a server does meanwhile is. */
async function fillPart(
  engine: Engine,
  source: EventSource,
  { from, until, each: batchSize = batchEvents }: { from: number; until: number; each?: number },
): Promise<Part> {
  const part = { events: until - from, ms: 0, cpuMs: 0 }
  const children = engine.childSeconds()
  for (let position = from; position < until; position += batchSize) {
    const events = batchAt(source, position, Math.min(batchSize, until - position))
    const usageBefore = process.cpuUsage()
    const startedMs = performance.now()
    const stored = await engine.append(events)
    part.ms += performance.now() - startedMs
    const { user, system } = process.cpuUsage(usageBefore)
    part.cpuMs += (user + system) / 1_000
    if (stored !== events.length) throw new Error(`${stored} of ${events.length} stored`)
  }
  part.cpuMs += (engine.childSeconds() - children) * 1_000
  return part
}

async function fill(engine: Engine, source: EventSource, total: number): Promise<Filled> {
  const tenth = Math.ceil(Math.min(total / 10, durableMax) / batchEvents) * batchEvents
  const isQuick = total > durableMax
  const first = await fillPart(engine, source, { from: 0, until: tenth })
  const batchSize = isQuick ? await engine.quick(true) : batchEvents
  const middle = await fillPart(engine, source, { from: tenth, until: total - tenth, each: batchSize })
  if (isQuick) await engine.quick(false)
  const last = await fillPart(engine, source, { from: total - tenth, until: total })
  const settling = await measured(engine, engine.settle)
  return { first, middle: { ...middle, batch: batchSize }, last, settling }
}

/** The first time after a restart, and at most nine further ones. */
async function ask(engine: Engine, askOnce: (turn: number) => number | Promise<number>): Promise<Asked> {
  const begunMs = performance.now()
  let answer = 0
  const first = await measured(engine, async () => (answer = await askOnce(0)))
  const again: number[] = []
  const { cpuMs } = await measured(engine, async () => {
    do {
      const startedMs = performance.now()
      await askOnce(again.length + 1)
      again.push(performance.now() - startedMs)
    } while (again.length < 9 && performance.now() - begunMs < askMs)
  })
  again.sort((a, b) => a - b)
  return { firstMs: first.ms, againMs: again[again.length >> 1]!, cpuMs: cpuMs / again.length, answer }
}

/** Scattered over all stored events. */
async function resend(engine: Engine, source: EventSource, total: number): Promise<Part> {
  const part = { events: 0, ms: 0, cpuMs: 0 }
  for (let turn = 0; turn < resentBatches; turn++) {
    const events = Array.from({ length: batchEvents }, (_, n) =>
      source.event(((turn * batchEvents + n) * 2_654_435_761 + 12_345) % total),
    )
    const { ms, cpuMs } = await measured(engine, async () => {
      const stored = await engine.append(events)
      if (stored !== 0) throw new Error(`${stored} events were stored twice`)
    })
    if (turn < warmUpBatches) continue
    part.events += batchEvents
    part.ms += ms
    part.cpuMs += cpuMs
  }
  return part
}

/** `folder`: of `flat.bench.ts`, when the engine has opened that. */
export async function run(
  title: string,
  engine: Engine,
  source: EventSource,
  { total, folder }: { total: number; folder: string | null },
): Promise<Found> {
  try {
    const filled = folder !== null ? flatFill(folder) : await fill(engine, source, total)
    const note = (text: string) =>
      console.error(`${new Date().toISOString().slice(11, 19)} ${title}: ${text}`)
    note('filled')
    if (folder !== null) await engine.restart()
    const bytes = await engine.bytes()
    const repacked = folder === null ? await repack(engine, bytes) : null
    const restarted = await measured(engine, async () => {
      await engine.restart()
      await engine.newest({})
    })
    const lastMs = source.event(total - 1).occurredAtMs
    const sinceMs = Math.floor((lastMs - 30 * dayMs) / hourMs) * hourMs
    const day = { text: 'no event has this', sinceMs: lastMs - dayMs }
    const idAt = (turn: number) => source.event(Math.floor(((turn + 0.5) * total) / 10)).json.slice(7, 43)
    const answers = {
      newest: await ask(engine, () => engine.newest({})),
      rare: await ask(engine, () => engine.rare({ vendor: 'Rare-Agent' })),
      byId: await ask(engine, (turn) => engine.byId({ id: idAt(turn) })),
      byVendor: await ask(engine, () => engine.byVendor({ sinceMs })),
      byMember: await ask(engine, () => engine.byMember({ member: 'page' })),
      search: await ask(engine, () => engine.search(day)),
    }
    note('asked')
    const resent = engine.dedupes ? await resend(engine, source, total) : null
    return { title, filled, bytes, repacked, restartMs: restarted.ms, answers, resent }
  } finally {
    await engine.close()
  }
}

async function repack(engine: Engine, bytes: number): Promise<Repacked | null> {
  if (engine.repack === undefined) return null
  let share = 0
  const { cpuMs } = await measured(engine, () => (share = engine.repack!(repackMs)))
  if (share === 0) return null
  return { share, bytes: bytes - (bytes - (await engine.bytes())) / share, cpuMs: cpuMs / share }
}

/** What `flat.bench.ts` wrote of its tenths. */
function flatFill(folder: string): Filled | null {
  const path = join(folder, 'slices.jsonl')
  if (!existsSync(path)) return null
  const slices = readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { until: number; events: number; seconds: number; cpuSeconds: number })
  const end = slices.at(-1)!.until
  const sum = (from: number, until: number): Part => {
    const rangeSlices = slices.filter((slice) => slice.until > from * end && slice.until <= until * end)
    const sumKey = (key: 'events' | 'seconds' | 'cpuSeconds') =>
      rangeSlices.reduce((total, slice) => total + slice[key], 0)
    return { events: sumKey('events'), ms: sumKey('seconds') * 1_000, cpuMs: sumKey('cpuSeconds') * 1_000 }
  }
  const middle = { ...sum(0.1, 0.9), batch: batchEvents }
  return { first: sum(0, 0.1), middle, last: sum(0.9, 1), settling: { ms: 0, cpuMs: 0 } }
}
