/** The content of logs that are followed: half lines, hostile ones, logs with the same start, damaged ones. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import {
  appendFileSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import {
  expectLines,
  follow,
  gptBot,
  line,
  lines,
  receiverOf,
  rotations,
  until,
} from '../../tests/support/followed-log.ts'
import { memoryLogStore } from '../../tests/support/log-store.ts'
import { tempDir } from '../../tests/support/temp-dir.ts'

setDefaultTimeout(60_000)

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

test('a file that replaces a log is neither stored nor quoted, and a log that returns is read on', async () => {
  using temp = tempDir('follow')
  const path = temp.join('logs', 'access.log')
  mkdirSync(temp.join('logs'))
  const secret = 'ab'.repeat(32)
  writeFileSync(temp.join('secret.key'), `${secret}\n`)
  writeFileSync(temp.join('of-another.log'), line(0).replace('/n/0', `/${secret}`))
  const replacements: { [name: string]: () => void } = {
    'a key': () => writeFileSync(path, `${secret}\n`),
    'text of people': () => writeFileSync(path, `the password is\n${secret}\n`.repeat(10)),
    binary: () => writeFileSync(path, `\0\0\0\u0001\n${secret}`),
    'a link to a key': () => symlinkSync(temp.join('secret.key'), path),
    'a link to another log': () => symlinkSync(temp.join('of-another.log'), path),
    'a pipe': () => void Bun.spawnSync(['mkfifo', path]),
    'a folder': () => mkdirSync(path),
  }
  for (const [name, place] of Object.entries(replacements)) {
    const store = memoryLogStore()
    writeFileSync(path, lines(0, 3))
    const followed = follow(path, receiverOf(store))
    await until(() => store.sums().lines === 3)
    rmSync(path)
    place()
    await until(() => followed.problems.length > 0, name)
    const shown = JSON.stringify([followed.problems, store.events_.slice(3)])
    expect([name, shown.includes(secret), shown.includes('password')]).toEqual([name, false, false])
    rmSync(path, { recursive: true })
    writeFileSync(path, lines(3, 6))
    await until(() => store.sums().lines === 6, `reading on after ${name}`)
    await followed.stop()
    rmSync(path)
    expectLines(store, 6)
  }
})

test('a rotated file that is damaged is named once; what can be read of it is stored', async () => {
  using temp = tempDir('follow')
  const path = temp.join('access.log')
  const store = memoryLogStore()
  writeFileSync(path, lines(0, 30))
  const followed = follow(path, receiverOf(store))
  await until(() => store.sums().lines === 30)
  await followed.stop()
  appendFileSync(path, lines(30, 3_000))
  rotations.rename(path)
  const whole = Bun.gzipSync(readFileSync(`${path}.1`))
  unlinkSync(`${path}.1`)
  writeFileSync(`${path}.1.gz`, whole.subarray(0, whole.length / 2))
  writeFileSync(path, lines(3_000, 3_003))
  const later = follow(path, receiverOf(store), { aheadMs: 120_000 })
  await until(() => later.problems.length > 0 && store.events_.some(({ page }) => page === '/n/3001'))
  await Bun.sleep(30)
  expect(later.problems).toEqual([`${path}.1.gz ends in the middle of its compressed data`])
  await later.stop()
  const { lines: read, bad } = store.sums()
  expect([read > 30 && read < 3_003, bad]).toEqual([true, 0])
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

test('a log that was replaced by a longer one with the same first line is another log', async () => {
  using temp = tempDir('follow')
  const path = temp.join('access.log')
  const store = memoryLogStore()
  writeFileSync(path, lines(0, 4))
  const followed = follow(path, receiverOf(store))
  await until(() => store.sums().lines === 4)
  await followed.stop()
  writeFileSync(path, line(0) + lines(60, 70))
  const later = follow(path, receiverOf(store))
  await until(() => store.sums().lines === 15)
  await later.stop()
  expect(new Set(store.sources()).size).toBe(2)
})

test('a log that is truncated while it is read, and grows beyond what was read, is read as what it is', async () => {
  using temp = tempDir('follow')
  const path = temp.join('access.log')
  const store = memoryLogStore()
  writeFileSync(path, lines(0, 6))
  const followed = follow(path, receiverOf(store))
  await until(() => store.sums().lines === 6)
  await followed.stop()
  const receiver = receiverOf(store)
  let isTruncated = false
  const later = follow(path, {
    ...receiver,
    // Between reading the start of the log and reading its new lines.
    async warm(sender, warmed) {
      if (!isTruncated) {
        isTruncated = true
        rotations.copytruncate(path)
        appendFileSync(path, lines(6, 30))
      }
      return receiver.warm(sender, warmed)
    },
  })
  await until(() => store.sums().lines >= 30)
  await Bun.sleep(20)
  await later.stop()
  expectLines(store, 30)
  expect(store.sources()).toHaveLength(2)
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

/** How runtimes write a piece of a line, and its end. */
const pieceWriters = {
  CRI: (text: string, isEnd: boolean) => `2026-11-23T10:00:00.1Z stdout ${isEnd ? 'F' : 'P'} ${text}\n`,
  'json-file': (text: string, isEnd: boolean) =>
    `${JSON.stringify({ log: isEnd ? `${text}\n` : text, stream: 'stdout', time: '2026-11-23T10:00:00.1Z' })}\n`,
}

test.each(Object.entries(pieceWriters))(
  'a line that %s cut is bad, also when its end comes later',
  async (_, write) => {
    using temp = tempDir('follow')
    const path = temp.join('access.log')
    const store = memoryLogStore()
    const whole = (index: number): string => write(line(index).trimEnd(), true)
    writeFileSync(path, whole(0) + write('203.0.113.9 - - [23/Nov/2026:10:00:00 +0000] "GET /aaaa', false))
    const followed = follow(path, receiverOf(store))
    await until(() => store.sums().lines === 2)
    appendFileSync(path, whole(7)) // what a client wrote where the cut is
    await until(() => store.sums().lines === 3)
    appendFileSync(path, whole(1))
    await until(() => store.sums().lines === 4)
    await followed.stop()
    expect(store.sums().bad).toBe(2)
    const pages = store.events_.filter(({ type }) => type === 'agent.requested').map(({ page }) => page)
    expect(pages).not.toContain('/n/7')
  },
)
