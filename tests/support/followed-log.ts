/** A log to follow in tests: its lines, its rotations, and a reader of it with an appliance in memory. */
import { expect } from 'bun:test'
import {
  copyFileSync,
  existsSync,
  readFileSync,
  renameSync,
  statSync,
  truncateSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { followLog } from '../../server/access/follow.ts'
import { makeReceiver, type AccessReceiver } from '../../server/access/receiver.ts'
import { addSums, noLines, type LineSums } from '../../server/access/sink.ts'
import { receiverSink } from '../../server/access/watches.ts'
import { bundledEvidence } from '../../server/evidence/evidence.ts'
import type { MemoryLogStore } from './log-store.ts'

export const gptBot = 'Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)'
const browser = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'

/** The line with this number: each third one by a person. */
export function line(number: number): string {
  const ss = String(number % 60).padStart(2, '0')
  const mm = String(Math.floor(number / 60) % 60).padStart(2, '0')
  const agent = number % 3 === 2 ? browser : gptBot
  return `203.0.113.9 - - [23/Nov/2026:10:${mm}:${ss} +0000] "GET /n/${number} HTTP/1.1" 200 512 "-" "${agent}"\n`
}

export function lines(from: number, to: number): string {
  return Array.from({ length: to - from }, (_, index) => line(from + index)).join('')
}

export const senderOf = (reader: string) => async () => ({
  orgId: 'org',
  keyId: 'import',
  door: 'access-log' as const,
  reader,
  options: { siteId: 'shop', keepQuery: [], keepAddresses: false, trustedProxies: [] },
})

export function receiverOf(store: MemoryLogStore): AccessReceiver {
  return makeReceiver({
    store,
    clock: { now: Date.now },
    isShared: false,
    arrivalMs: Date.now,
    fail: () => undefined,
    evidence: { current: bundledEvidence },
    evidenceMaxAgeDays: 180,
    hostNames: null,
    robots: { of: async () => null },
    disk: { sawFull: () => undefined } as never,
  })
}

interface Followed {
  problems: (string | null)[]
  formats: string[]
  sums: LineSums
  stop(): Promise<void>
  done: Promise<void>
}

interface More {
  format?: string
  aheadMs?: number
  reader?: string
}

export function follow(path: string, receiver: AccessReceiver, options: More = {}): Followed {
  const { format = 'auto', aheadMs = 0, reader = 'one' } = options
  const ending = new AbortController()
  const followed: Followed = {
    problems: [],
    formats: [],
    sums: noLines(),
    done: Promise.resolve(),
    async stop() {
      ending.abort()
      await followed.done.catch(() => undefined)
    },
  }
  followed.done = followLog({
    path,
    format,
    sink: receiverSink(receiver, senderOf(reader)),
    signal: ending.signal,
    intervalMs: 4,
    now: () => Date.now() + aheadMs,
    understood: (_, { format: { name } }) => followed.formats.push(name),
    stored: (sums) => addSums(followed.sums, sums),
    problem: (message) => followed.problems.push(message),
  })
  followed.done.catch(() => undefined)
  return followed
}

export async function until(holds: () => boolean, condition = 'it'): Promise<void> {
  for (const endMs = performance.now() + 20_000; !holds(); await Bun.sleep(4))
    if (performance.now() > endMs) throw new Error(`${condition} did not happen in time`)
}

/** The lines below this number, each once: those of agents as events, those of people as counts. */
export function expectLines(store: MemoryLogStore, count: number): void {
  const numbers = Array.from({ length: count }, (_, index) => index)
  const pages = store.events_.filter(({ type }) => type === 'agent.requested').map(({ page }) => page)
  const expected = numbers.filter((number) => number % 3 !== 2).map((number) => `/n/${number}`)
  expect(pages.toSorted()).toEqual(expected.toSorted())
  expect(store.sums()).toEqual({ lines: count, people: count - expected.length, excluded: 0, bad: 0 })
}

function sizeOf(path: string): number {
  return existsSync(path) ? statSync(path).size : 0
}

/** Moves log.1 to log.2 and so on, compressed or not. */
function shift(path: string): void {
  for (let number = 20; number >= 1; number--)
    for (const end of ['', '.gz'])
      if (existsSync(`${path}.${number}${end}`))
        renameSync(`${path}.${number}${end}`, `${path}.${number + 1}${end}`)
}

export function compress(path: string): void {
  if (!existsSync(path)) return
  const { atimeMs, mtimeMs } = statSync(path)
  writeFileSync(`${path}.gz`, Bun.gzipSync(readFileSync(path)))
  utimesSync(`${path}.gz`, atimeMs / 1_000, mtimeMs / 1_000)
  unlinkSync(path)
}

export const rotations = {
  rename(path: string): void {
    if (sizeOf(path) === 0) return
    shift(path)
    renameSync(path, `${path}.1`)
  },
  copytruncate(path: string): void {
    if (sizeOf(path) === 0) return
    shift(path)
    copyFileSync(path, `${path}.1`)
    truncateSync(path)
  },
  gzip: (path: string): void => compress(`${path}.1`),
  gzipOlder: (path: string): void => compress(`${path}.2`),
}
