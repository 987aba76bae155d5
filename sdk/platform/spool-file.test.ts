/** The spool has every event that was appended and not acknowledged, however the process ended. */
import { afterEach, expect, test } from 'bun:test'
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import type { Spool } from './platform.ts'
import { openSpoolFile } from './spool-file.ts'

const folders: string[] = []
const spools: Spool[] = []
afterEach(() => {
  for (const spool of spools.splice(0)) spool.close()
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true })
})

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'sightglass-spool-'))
  folders.push(path)
  return path
}

function open(path: string): Spool {
  const spool = openSpoolFile(path, (error) => {
    throw error
  })
  spools.push(spool)
  return spool
}

const nextTick = (): Promise<void> => Promise.resolve().then(() => {})

test('appended events are on disk after the tick and are restored in order', async () => {
  const path = join(folder(), 'deep', 'events')
  const first = open(path)
  expect(first.pending).toEqual([])
  first.append('{"id":"a"}')
  first.append('{"id":"ü"}')
  await nextTick()
  expect(statSync(`${path}.000001`).size).toBe(23) // a crash from here on loses nothing
  first.close()
  const second = open(path)
  expect(second.pending).toEqual(['{"id":"a"}', '{"id":"ü"}'])
  second.forget(1, 10)
  second.append('{"id":"c"}')
  second.close()
  expect(open(path).pending).toEqual(['{"id":"ü"}', '{"id":"c"}'])
})

test('acknowledged events stay acknowledged across restarts', () => {
  const path = join(folder(), 'events')
  const spool = open(path)
  spool.append('{"id":"a"}')
  spool.append('{"id":"b"}')
  spool.forget(1, 10)
  spool.close()
  for (let restart = 0; restart < 3; restart++) {
    const again = open(path)
    expect(again.pending).toEqual(['{"id":"b"}'])
    again.close()
  }
})

test('a spool without pending events is nearly empty', () => {
  const path = join(folder(), 'events')
  const spool = open(path)
  for (let index = 0; index < 1_000; index++) spool.append('x'.repeat(10))
  spool.forget(1_000, 10_000)
  expect(
    readdirSync(join(path, '..')).reduce((sum, name) => sum + statSync(join(path, '..', name)).size, 0),
  ).toBeLessThan(100)
  spool.close()
  expect(open(path).pending).toEqual([])
})

test('acknowledged segments are deleted while the spool is in use', () => {
  const path = join(folder(), 'events')
  const spool = open(path)
  const text = JSON.stringify({ id: 'x'.repeat(1024 * 1024) })
  for (let index = 0; index < 12; index++) {
    spool.append(text)
    spool.forget(0, 0) // writes, as the end of a tick does
  }
  const segments = (): number => readdirSync(join(path, '..')).filter((name) => /\.\d{6}$/.test(name)).length
  expect(segments()).toBeGreaterThan(2)
  spool.forget(11, 11 * text.length)
  expect(segments()).toBeLessThanOrEqual(2)
  spool.close()
  expect(open(path).pending).toEqual([text])
})

test('a line cut by a crash is ignored, earlier ones are restored', () => {
  const path = join(folder(), 'events')
  const spool = open(path)
  spool.append('{"id":"whole"}')
  spool.close()
  appendFileSync(`${path}.000001`, '{"id":"cu')
  const next = open(path)
  expect(next.pending).toEqual(['{"id":"whole"}'])
  next.append('{"id":"after"}')
  next.forget(1, 14)
  next.close()
  expect(open(path).pending).toEqual(['{"id":"after"}'])
})

test('one process per spool; a dead holder does not count', () => {
  const path = join(folder(), 'events')
  open(path)
  expect(() => open(path)).toThrow(/already open/)
  const otherPath = join(folder(), 'events')
  writeFileSync(`${otherPath}.lock`, '999999999 123\n')
  expect(open(otherPath).pending).toEqual([])
  const thread = join(folder(), 'events')
  writeFileSync(`${thread}.lock`, `${process.pid} ${startOf(process.pid)}\n`)
  if (existsSync('/proc/self/stat')) expect(() => open(thread)).toThrow(/in use by process/)
  const alive = join(folder(), 'events')
  writeFileSync(`${alive}.lock`, `${process.ppid} ${startOf(process.ppid)}\n`)
  expect(() => open(alive)).toThrow(/in use by process/)
  const reused = join(folder(), 'events')
  writeFileSync(`${reused}.lock`, `${process.ppid} 1\n`) // that number was somebody else's then
  if (existsSync('/proc/self/stat')) expect(open(reused).pending).toEqual([])
})

function startOf(pid: number): string {
  if (!existsSync('/proc/self/stat')) return ''
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? ''
}

test('a failing disk is reported once and throws nothing', () => {
  const path = join(folder(), 'events')
  const errors: unknown[] = []
  const spool = openSpoolFile(path, (error) => errors.push(error))
  rmSync(join(path, '..'), { recursive: true })
  folders.length = 0
  for (let round = 0; round < 3; round++) {
    spool.append('x'.repeat(5 * 1024 * 1024)) // fills its segment: the next one cannot be made
    spool.forget(0, 0)
  }
  spool.close()
  expect(errors.length).toBe(1)
})

test('law: across restarts it behaves like a list', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('append' as const), text: fc.string({ unit: 'grapheme', maxLength: 20 }) }),
    fc.record({ kind: fc.constant('forget' as const), count: fc.integer({ min: 0, max: 5 }) }),
    fc.record({ kind: fc.constant('restart' as const) }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const path = join(folder(), 'events')
      let spool = open(path)
      let model: string[] = []
      for (const currentStep of steps) {
        if (currentStep.kind === 'append') {
          const text = JSON.stringify({ id: currentStep.text })
          spool.append(text)
          model.push(text)
        } else if (currentStep.kind === 'forget') {
          const forgottenLines = model.slice(0, currentStep.count)
          spool.forget(
            forgottenLines.length,
            forgottenLines.reduce((sum, text) => sum + Buffer.byteLength(text), 0),
          )
          model = model.slice(forgottenLines.length)
        } else {
          spool.close()
          spool = open(path)
          expect(spool.pending).toEqual(model)
        }
      }
      spool.close()
    }),
    { numRuns: 60 },
  )
})

test('a damaged line costs itself, wherever it stands and whatever it is', () => {
  const good = fc.integer({ min: 0, max: 1e9 }).map((id) => Buffer.from(JSON.stringify({ id: `evt_${id}ü` })))
  const damaged = fc.oneof(
    fc
      .constantFrom('', '{"id":"a"', '\0\0\0\0', '[]', '1', 'null', '{"id":"a"}{"id":"b"}')
      .map((text) => Buffer.from(text)),
    good.map((line) => Buffer.concat([line.subarray(0, -4), Buffer.from([0xff]), line.subarray(-3)])),
  )
  const lines = fc.array(
    fc.oneof(
      good.map((line) => ({ line, isGood: true })),
      damaged.map((line) => ({ line, isGood: false })),
    ),
    { maxLength: 12 },
  )
  fc.assert(
    fc.property(lines, fc.nat(3), (lineEntries, acknowledged) => {
      const path = join(folder(), 'events')
      writeFileSync(
        `${path}.000001`,
        Buffer.concat(lineEntries.flatMap(({ line }) => [line, Buffer.from('\n')])),
      )
      const goodLines = lineEntries.filter(({ isGood }) => isGood).map(({ line }) => line.toString())
      const spool = open(path)
      expect([spool.pending, spool.damaged]).toEqual([goodLines, lineEntries.length - goodLines.length])
      const sentLines = goodLines.slice(0, acknowledged)
      if (sentLines.length > 0) spool.forget(sentLines.length, Buffer.byteLength(sentLines.join('')))
      spool.append('{"id":"new"}')
      spool.close()
      const again = open(path)
      expect([again.pending, again.damaged]).toEqual([
        [...goodLines.slice(sentLines.length), '{"id":"new"}'],
        0,
      ])
      again.close()
    }),
    { numRuns: 60 },
  )
})
