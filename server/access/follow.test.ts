/** Following a log: every line once, whatever rotation, kills and an appliance that is away do in between. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import fc from 'fast-check'
import {
  appendFileSync,
  mkdirSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import {
  compress,
  expectLines,
  follow,
  line,
  lines,
  receiverOf,
  rotations,
  senderOf,
  until,
} from '../../tests/support/followed-log.ts'
import { memoryLogStore } from '../../tests/support/log-store.ts'
import { tempDir } from '../../tests/support/temp-dir.ts'
import { sourceId } from './agent-events.ts'
import { receiverSink } from './watches.ts'
import { runs } from '../../tests/support/runs.ts'

setDefaultTimeout(60_000)

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
    { numRuns: runs(25) },
  )
})

test('a file that was copied, renamed and compressed in one moment is read after the copy', async () => {
  using temp = tempDir('follow')
  const path = temp.join('access.log')
  const store = memoryLogStore()
  const first = follow(path, receiverOf(store))
  writeFileSync(path, lines(0, 1))
  await until(() => store.sums().lines === 1)
  await first.stop()
  rotations.copytruncate(path)
  appendFileSync(path, lines(1, 8))
  rotations.rename(path)
  rotations.gzip(path) // its time has no microseconds, so it is before that of the copy
  appendFileSync(path, lines(8, 22))
  const second = follow(path, receiverOf(store))
  await until(() => store.sums().lines === 22, 'line 22')
  await second.stop()
  expectLines(store, 22)
})

test('a rotation at any moment of a start hides no file', async () => {
  for (let turns = 0; turns < 40; turns++) {
    using temp = tempDir('follow')
    const path = temp.join('access.log')
    const store = memoryLogStore()
    writeFileSync(path, lines(0, 7))
    const first = follow(path, receiverOf(store))
    await until(() => store.sums().lines === 7)
    await first.stop()
    rotations.rename(path)
    writeFileSync(path, lines(7, 14))
    const second = follow(path, receiverOf(store))
    for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve))
    rotations.copytruncate(path)
    await until(() => store.sums().lines === 14, `line 14 after ${turns} turns`)
    await second.stop()
    expectLines(store, 14)
  }
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

test('no line is lost when a reader starts or ends while a rotated file is being compressed', async () => {
  using temp = tempDir('follow')
  const path = temp.join('access.log')
  const store = memoryLogStore()
  const packed = (from: number, to: number): Uint8Array => Bun.gzipSync(lines(from, to))
  const finish = (name: string, from: number, to: number): void => {
    writeFileSync(name, packed(from, to))
    utimesSync(name, Date.now() / 1_000 - 9, Date.now() / 1_000 - 9) // of the file that was compressed
  }
  writeFileSync(path, lines(0, 5))
  const first = follow(path, receiverOf(store))
  await until(() => store.sums().lines === 5)
  await first.stop()
  unlinkSync(path)
  writeFileSync(`${path}.2.gz`, packed(0, 200).slice(0, 50)) // the only file that the store knows
  writeFileSync(`${path}.1`, lines(200, 230))
  writeFileSync(path, lines(230, 240))
  const second = follow(path, receiverOf(store))
  await Bun.sleep(50)
  finish(`${path}.2.gz`, 0, 200)
  await until(() => store.sums().lines === 240)

  await second.stop()
  rotations.rename(path)
  appendFileSync(path, lines(240, 250))
  rotations.rename(path)
  unlinkSync(`${path}.1`)
  writeFileSync(`${path}.1.gz`, packed(240, 270).slice(0, 50)) // between known files and a new one
  writeFileSync(path, lines(270, 280))
  const third = follow(path, receiverOf(store))
  await Bun.sleep(50)
  await third.stop()
  expect(store.sums().lines).toBe(240)
  finish(`${path}.1.gz`, 240, 270)
  const fourth = follow(path, receiverOf(store))
  await until(() => store.sums().lines === 280)
  await fourth.stop()
  expectLines(store, 280)
})

test('a session continues after a restart of the reader and of the appliance', async () => {
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

test('the second of two readers of one log is refused, also under another name', async () => {
  using temp = tempDir('follow')
  const path = temp.join('access.log')
  const store = memoryLogStore()
  const receiver = receiverOf(store)
  writeFileSync(path, lines(0, 4))
  const followed = follow(path, receiver)
  await until(() => store.sums().lines === 4)
  symlinkSync(path, temp.join('other.log'))
  const status = { path: 'other.log', source: sourceId(lines(0, 4)), behindBytes: 0, problem: null }
  const second = receiverSink(receiver, senderOf('two')).position(status)
  expect(await second.catch((error: Error) => error.message)).toBe('Another process reads other.log.')
  const refused = follow(temp.join('other.log'), receiver, { reader: 'two' })
  const message = await refused.done.catch((error: Error) => error.message)
  expect(message).toBe(`Another process reads ${temp.join('other.log')}.`)
  expect(receiver.watched('org')).toMatchObject([{ siteId: 'shop', path, behindBytes: 0, problem: null }])
  await followed.stop()
})
