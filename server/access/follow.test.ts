/** Following a log: every line once, whatever rotation, kills and an appliance that is away do in between. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import fc from 'fast-check'
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tempDir } from '../../tests/support/temp-dir.ts'
import { memoryLogStore, type MemoryLogStore } from '../../tests/support/log-store.ts'
import { bundledEvidence } from '../evidence/evidence.ts'
import { followLog } from './follow.ts'
import { makeReceiver, type AccessReceiver } from './receiver.ts'
import { addSums, noLines, type LineSums } from './sink.ts'
import { receiverSink } from './watches.ts'

setDefaultTimeout(60_000)

const gptBot = 'Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)'
const browser = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'

/** The line with this number: each third one by a person. */
function line(number: number): string {
  const second = String(number % 60).padStart(2, '0')
  const minute = String(Math.floor(number / 60) % 60).padStart(2, '0')
  const who = number % 3 === 2 ? browser : gptBot
  return `203.0.113.9 - - [23/Nov/2026:10:${minute}:${second} +0000] "GET /n/${number} HTTP/1.1" 200 512 "-" "${who}"\n`
}

function lines(from: number, to: number): string {
  return Array.from({ length: to - from }, (_, at) => line(from + at)).join('')
}

const senderOf = (reader: string) => async () => ({
  ...{ orgId: 'org', keyId: 'import', reader },
  options: { siteId: 'shop', keepQuery: [], keepAddresses: false, trustedProxies: [] },
})

function receiverOf(store: MemoryLogStore): AccessReceiver {
  return makeReceiver({
    ...{ store, clock: { now: Date.now }, isShared: false, arrivalMs: Date.now, fail: () => undefined },
    ...{ evidence: { current: bundledEvidence }, evidenceMaxAgeDays: 180, robots: { of: async () => null } },
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

function follow(path: string, receiver: AccessReceiver, more: More = {}): Followed {
  const { format = 'auto', aheadMs = 0, reader = 'one' } = more
  const ending = new AbortController()
  const followed: Followed = {
    ...{ problems: [], formats: [], sums: noLines(), done: Promise.resolve() },
    async stop() {
      ending.abort()
      await followed.done.catch(() => undefined)
    },
  }
  followed.done = followLog({
    ...{ path, format, sink: receiverSink(receiver, senderOf(reader)), signal: ending.signal, intervalMs: 4 },
    now: () => Date.now() + aheadMs,
    understood: (_, { format: { name } }) => followed.formats.push(name),
    stored: (sums) => addSums(followed.sums, sums),
    problem: (message) => followed.problems.push(message),
  })
  followed.done.catch(() => undefined)
  return followed
}

async function until(holds: () => boolean, what = 'it'): Promise<void> {
  for (const endMs = performance.now() + 20_000; !holds(); await Bun.sleep(4))
    if (performance.now() > endMs) throw new Error(`${what} did not happen in time`)
}

/** The lines below this number, each once: those of agents as events, those of people as counts. */
function expectLines(store: MemoryLogStore, below: number): void {
  const numbers = Array.from({ length: below }, (_, at) => at)
  const pages = store.events_.filter(({ type }) => type === 'agent.requested').map(({ page }) => page)
  const expected = numbers.filter((each) => each % 3 !== 2).map((each) => `/n/${each}`)
  expect(pages.toSorted()).toEqual(expected.toSorted())
  expect(store.sums()).toEqual({ lines: below, people: below - expected.length, excluded: 0, bad: 0 })
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

function compress(path: string): void {
  if (!existsSync(path)) return
  const { atimeMs, mtimeMs } = statSync(path)
  writeFileSync(`${path}.gz`, Bun.gzipSync(readFileSync(path)))
  utimesSync(`${path}.gz`, atimeMs / 1_000, mtimeMs / 1_000)
  unlinkSync(path)
}

const rotations = {
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

type Step = keyof typeof rotations | 'write' | 'half' | 'kill' | 'restart' | 'fail' | 'unsure' | 'wait'
const stepNames: Step[] = [
  'write',
  'write',
  'write',
  'half',
  'wait',
  'rename',
  'copytruncate',
  'gzip',
  'gzipOlder',
]
const faults: Step[] = ['kill', 'restart', 'fail', 'unsure']

test('every line is stored once through any sequence of writes, rotations, kills and failures', async () => {
  const steps = fc.array(fc.constantFrom(...stepNames, ...faults), { minLength: 4, maxLength: 24 })
  await fc.assert(
    fc.asyncProperty(steps, async (sequence) => {
      using temp = tempDir('follow')
      const path = temp.join('access.log')
      const store = memoryLogStore()
      let receiver = receiverOf(store)
      let followed = follow(path, receiver)
      let written = 0
      for (const step of sequence) {
        if (step === 'write') {
          appendFileSync(path, lines(written, written + 7))
          written += 7
        } else if (step === 'half') {
          appendFileSync(path, line(written).slice(0, 30))
          await Bun.sleep(6)
          appendFileSync(path, line(written++).slice(30))
        } else if (step === 'wait') await Bun.sleep(15)
        else if (step === 'fail' || step === 'unsure') store.failNext(step)
        else if (step === 'kill' || step === 'restart') {
          await followed.stop()
          if (step === 'restart') receiver = receiverOf(store)
          followed = follow(path, receiver)
        } else rotations[step](path)
        // As logrotate, which runs seldom: no file is rotated away before the reader knows of the log.
        if (written > 0) await until(() => store.sums().lines > 0, 'the first line')
      }
      await until(() => store.sums().lines >= written, `line ${written} after ${sequence.join(' ')}`)
      await followed.stop()
      expectLines(store, written)
    }),
    { numRuns: 25 },
  )
})

test('a half line waits, and a rotated file may end without a line feed', async () => {
  using temp = tempDir('follow')
  const path = temp.join('access.log')
  const store = memoryLogStore()
  writeFileSync(path, lines(0, 3) + line(3).slice(0, 50))
  const followed = follow(path, receiverOf(store))
  await until(() => store.sums().lines === 3)
  await Bun.sleep(20)
  expect(store.sums().lines).toBe(3)
  appendFileSync(path, line(3).slice(50).trimEnd())
  await Bun.sleep(20)
  expect(store.sums().lines).toBe(3)
  await followed.stop()
  renameSync(path, `${path}.1`)
  writeFileSync(path, line(4))
  const later = follow(path, receiverOf(store), { aheadMs: 120_000 })
  await until(() => store.sums().lines === 5)
  await later.stop()
  expectLines(store, 5)
})

test('a log that does not exist yet is waited for; problems are reported and end', async () => {
  using temp = tempDir('follow')
  const path = temp.join('access.log')
  const store = memoryLogStore()
  const followed = follow(path, receiverOf(store))
  await until(() => followed.problems.length === 1)
  expect(followed.problems[0]).toBe(`${path} does not exist (any more)`)
  symlinkSync(path, path)
  await until(() => followed.problems.length === 2)
  expect(followed.problems[1]).toContain('is a loop of symbolic links')
  unlinkSync(path)
  mkdirSync(path)
  await until(() => followed.problems.at(-1)?.endsWith('is not a file') === true)
  rmSync(path, { recursive: true })
  writeFileSync(path, '\u0089PNG\r\n\u001a\n and so on\n')
  await until(() => followed.problems.at(-1)?.includes('is not an access log') === true)
  writeFileSync(path, lines(0, 4))
  await until(() => followed.problems.at(-1) === null)
  await until(() => store.sums().lines === 4)
  unlinkSync(path)
  await until(() => followed.problems.at(-1) === `${path} does not exist (any more)`)
  writeFileSync(path, lines(4, 6))
  await until(() => store.sums().lines === 6)
  await followed.stop()
  expectLines(store, 6)
  expect(followed.formats).toEqual(['combined', 'combined'])
})

test('lines of 1 MiB count as bad; NUL bytes before a line and invalid UTF-8 are read', async () => {
  using temp = tempDir('follow')
  const path = temp.join('access.log')
  const store = memoryLogStore()
  const hostile = [
    line(0),
    `${'x'.repeat(1024 * 1024)}\n`,
    line(1),
    `\0\0\0${line(2)}`,
    line(3).replace('/n/3', '/n/\u00ff\u00fe'),
    `${'y'.repeat(300_000)}\n`,
    line(4),
  ]
  const followed = follow(path, receiverOf(store))
  for (const part of hostile) {
    appendFileSync(path, Buffer.from(part.slice(0, 100_000), 'latin1'))
    await Bun.sleep(5)
    appendFileSync(path, Buffer.from(part.slice(100_000), 'latin1'))
  }
  await until(() => store.sums().lines === hostile.length)
  await followed.stop()
  const again = follow(path, receiverOf(store))
  appendFileSync(path, line(6))
  await until(() => store.sums().lines === hostile.length + 1)
  await again.stop()
  expect(store.sums()).toEqual({ lines: 8, people: 1, excluded: 0, bad: 2 })
  const pages = store.events_.filter(({ type }) => type === 'agent.requested').map(({ page }) => page)
  expect(pages).toEqual(['/n/0', '/n/1', '/n/\ufffd\ufffd', '/n/4', '/n/6'])
})

test('two logs with the same first line are two logs', async () => {
  using temp = tempDir('follow')
  const path = temp.join('access.log')
  const store = memoryLogStore()
  writeFileSync(path, lines(0, 4))
  const followed = follow(path, receiverOf(store))
  await until(() => store.sums().lines === 4)
  truncateSync(path)
  appendFileSync(path, line(0) + lines(4, 6))
  await until(() => store.sums().lines === 7)
  rotations.rename(path)
  appendFileSync(path, line(0) + lines(6, 8))
  await until(() => store.sums().lines === 10)
  await followed.stop()
  const pages = store.events_.filter(({ type }) => type === 'agent.requested').map(({ page }) => page)
  expect(pages).toEqual(['/n/0', '/n/1', '/n/3', '/n/0', '/n/4', '/n/0', '/n/6', '/n/7'])
})

test('rotated files from before the log was followed are left to import access', async () => {
  using temp = tempDir('follow')
  const path = temp.join('access.log')
  const store = memoryLogStore()
  writeFileSync(`${path}.2`, lines(100, 130))
  compress(`${path}.2`)
  writeFileSync(`${path}.1`, lines(200, 230))
  writeFileSync(path, lines(0, 4))
  const followed = follow(path, receiverOf(store))
  await until(() => store.sums().lines === 4)
  rotations.gzip(path)
  rotations.rename(path)
  appendFileSync(path, lines(4, 8))
  await until(() => store.sums().lines === 8)
  await followed.stop()
  expectLines(store, 8)
})

test('a session goes on after a restart of the reader and of the appliance', async () => {
  using temp = tempDir('follow')
  const path = temp.join('access.log')
  const store = memoryLogStore()
  writeFileSync(path, lines(0, 10))
  const followed = follow(path, receiverOf(store))
  await until(() => store.sums().lines === 10)
  await followed.stop()
  const later = follow(path, receiverOf(store))
  appendFileSync(path, lines(10, 20))
  await until(() => store.sums().lines === 20)
  await later.stop()
  expect(new Set(store.events_.map(({ sessionId }) => sessionId)).size).toBe(1)
  expect(store.events_.filter(({ type }) => type === 'agent.detected')).toHaveLength(1)
})

test('W3C logs keep the fields that they named in their first lines', async () => {
  using temp = tempDir('follow')
  const path = temp.join('u_ex261123.log')
  const store = memoryLogStore()
  const request = (number: number): string =>
    `2026-11-23 10:00:0${number} 203.0.113.9 GET /n/${number} 200 ${gptBot.replaceAll(' ', '+')}\n`
  const head = '#Version: 1.0\n#Fields: date time c-ip cs-method cs-uri-stem sc-status cs(User-Agent)\n'
  writeFileSync(path, head + request(0))
  const followed = follow(path, receiverOf(store))
  await until(() => store.sums().lines === 3)
  await followed.stop()
  appendFileSync(path, request(1))
  const later = follow(path, receiverOf(store))
  await until(() => store.sums().lines === 4)
  await later.stop()
  expect(store.sums()).toEqual({ lines: 4, people: 0, excluded: 2, bad: 0 })
  const pages = store.events_.filter(({ type }) => type === 'agent.requested').map(({ page }) => page)
  expect(pages).toEqual(['/n/0', '/n/1'])
})

test('the second of two readers of one log is refused, also under another name', async () => {
  using temp = tempDir('follow')
  const path = temp.join('access.log')
  const store = memoryLogStore()
  const receiver = receiverOf(store)
  writeFileSync(path, lines(0, 4))
  const followed = follow(path, receiver)
  await until(() => store.sums().lines === 4)
  symlinkSync(path, temp.join('other.log'))
  const status = { path: 'other.log', source: store.sources()[0]!, behindBytes: 0, problem: null }
  const second = receiverSink(receiver, senderOf('two')).position(status)
  expect(await second.catch((error: Error) => error.message)).toBe('Another process reads other.log.')
  const refused = follow(temp.join('other.log'), receiver, { reader: 'two' })
  const message = await refused.done.catch((error: Error) => error.message)
  expect(message).toBe(`Another process reads ${temp.join('other.log')}.`)
  expect(receiver.watched('org')).toMatchObject([{ siteId: 'shop', path, behindBytes: 0, problem: null }])
  await followed.stop()
})
