/** The log: its format, its redaction, and that a reader that never reads blocks nothing. */
import { afterAll, expect, test } from 'bun:test'
import { closeSync, mkdtempSync, openSync, readFileSync, renameSync, rmSync, write } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { newApiKey, newToken } from '../ids.ts'
import { logLine, openLogSink, redact, startLog, type LogLevel } from '../log.ts'

const folder = mkdtempSync(join(tmpdir(), 'sightglass-log-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const clock = { now: () => Date.UTC(2026, 5, 23, 12) }

async function written(level: LogLevel, use: (log: ReturnType<typeof startLog>) => void): Promise<string[]> {
  const path = join(folder, `${level}.log`)
  const fd = openSync(path, 'w')
  const log = startLog({ level, clock, sink: openLogSink({ fd }) })
  use(log)
  await log.close()
  closeSync(fd)
  return readFileSync(path, 'utf8').split('\n').slice(0, -1)
}

test('one JSON object per line, in order, at and above the level', async () => {
  const lines = await written('info', (log) => {
    log.debug('too_fine')
    log.info('first', { n: 1, text: 'two\nlines', list: ['a'], none: undefined, nothing: null })
    log.error('second')
  })
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    {
      time: '2026-06-23T12:00:00.000Z',
      level: 'info',
      event: 'first',
      n: 1,
      text: 'two\nlines',
      list: ['a'],
      nothing: null,
    },
    { time: '2026-06-23T12:00:00.000Z', level: 'error', event: 'second' },
  ])
})

test('a field cannot override the time, the level or the event', () => {
  expect(JSON.parse(logLine(0, 'info', 'real', { event: 'false', level: 'error', time: 'never' }))).toEqual({
    time: '1970-01-01T00:00:00.000Z',
    level: 'info',
    event: 'real',
  })
})

test('keys, webhook secrets and tokens are redacted everywhere; ids are not', () => {
  const kinds = fc.constantFrom('ingest', 'secret', 'publishable').map((kind) => newApiKey(kind as 'ingest'))
  const secrets = fc.oneof(
    kinds,
    fc.constant(0).map(() => newToken()),
    fc.constant(0).map(() => `whsec_${newToken()}`),
  )
  fc.assert(
    fc.property(
      secrets,
      fc.constantFrom('', ' ', '"', '/setup#', 'Bearer ', '=', '\n', '\\n'),
      (secret, prefix) => {
        const line = logLine(0, 'info', 'x', { text: `before${prefix === '' ? ' ' : prefix}${secret} after` })
        // Six characters in a row of the random part would already be too much.
        expect(line).not.toContain(secret.slice(10, 22))
        expect(JSON.parse(line).event).toBe('x')
      },
    ),
  )
  expect(logLine(0, 'info', 'x', { password: 'p', token: 't' })).not.toMatch(/"[pt]"/)
  const clear =
    'key_3q2uVbkz0c5mYw1n8sJx4A evt_1 /setup 9b74c9897bac770ffc029102a200c5de9b74c9897bac770ffc029102a200c5de'
  expect(redact(clear)).toBe(clear)
})

test('a reader that never reads blocks nothing: lines are dropped, counted and reported', async () => {
  const script = `
    import { startLog } from ${JSON.stringify(join(import.meta.dir, '../log.ts'))}
    const log = startLog({ level: 'info', clock: { now: () => 0 } })
    for (let round = 0; round < 50; round++) {
      for (let i = 0; i < 500; i++) log.info('flood', { text: 'x'.repeat(300) })
      await Bun.sleep(1)
    }
    const startMs = performance.now()
    const since = () => performance.now() - startMs
    const [closeMs, sleepMs] = await Promise.all([log.close(300).then(since), Bun.sleep(300).then(since)])
    process.stdout.write(JSON.stringify({ closeMs, sleepMs }))
    process.exit(0)`
  // The shell's pipe has a reader that reads nothing until the writer has ended: who waited for it would wait for ever.
  // Standard output goes around it, to the file.
  const out = join(folder, 'out.json')
  const shell = Bun.spawn([
    'sh',
    '-c',
    `( "$0" -e "$1" 2>&1 >"$2"; echo $? >"$2.rc" ) | until [ -s "$2.rc" ]; do sleep 0.1; done`,
    process.execPath,
    script,
    out,
  ])
  await shell.exited
  const { closeMs, sleepMs } = JSON.parse(readFileSync(out, 'utf8')) as { closeMs: number; sleepMs: number }
  expect(closeMs).toBeWithin(290, sleepMs + 250) // both stand still when the machine does
  expect(readFileSync(`${out}.rc`, 'utf8').trim()).toBe('0')
}, 15_000)

test('dropped lines are reported as soon as the reader continues', async () => {
  const path = join(folder, 'space.log')
  const fd = openSync(path, 'w')
  const log = startLog({ level: 'info', clock, sink: openLogSink({ fd, bytesMax: 1_000 }) })
  for (let i = 0; i < 100; i++) log.info('line', { i })
  await log.close()
  closeSync(fd)
  const lines = readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  const written = lines.filter(({ event }) => event === 'line')
  expect(written.map(({ i }) => i)).toEqual(written.map((_, index) => index))
  expect(lines.at(-1)).toMatchObject({ event: 'log_lines_dropped', count: 100 - written.length })
  expect(written.length).toBeGreaterThan(5)
  expect(written.length).toBeLessThan(30)
})

test('a failing device does not end the process', async () => {
  const fd = openSync('/dev/full', 'w') // stays open: the sink tries again
  const log = startLog({ level: 'info', clock, sink: openLogSink({ fd }) })
  for (let i = 0; i < 10; i++) log.info('into_nothing', { i })
  await log.close(50)
  log.info('still_alive')
  await log.close(50)
})

test('after a full disk the log continues and reports the dropped lines', async () => {
  const path = join(folder, 'full.log')
  const fd = openSync(path, 'w')
  let full = true
  const writeTo = ((...args: Parameters<typeof write>) => {
    const callback = args.at(-1) as (error: NodeJS.ErrnoException | null, written: number) => void
    if (full) setTimeout(callback, 0, Object.assign(new Error('no space'), { code: 'ENOSPC' }), 0)
    else write(...args)
  }) as typeof write
  const drained = Promise.withResolvers<void>()
  const sink = openLogSink({ fd, bytesMax: 2_000, writeTo, drained: () => drained.resolve() })
  const log = startLog({ level: 'info', clock, sink })
  for (let i = 0; i < 100; i++) log.info('while_full', { i })
  await log.close(300)
  expect(readFileSync(path, 'utf8')).toBe('')
  full = false
  await drained.promise
  log.info('room_again')
  await log.close()
  closeSync(fd)
  const lines = readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  const written = lines.filter(({ event }) => event === 'while_full').length
  expect(written).toBeWithin(5, 100)
  expect(lines.slice(written)).toMatchObject([
    { event: 'log_lines_dropped', count: 100 - written },
    { event: 'room_again' },
  ])
})

test('a rotated log file is reopened under its name', async () => {
  const path = join(folder, 'rotated.log')
  const fd = openSync(path, 'a')
  const log = startLog({ level: 'info', clock, sink: openLogSink({ fd }) })
  log.info('before')
  await log.close()
  renameSync(path, `${path}.1`)
  expect(log.reopen()).toBe(true)
  log.info('after')
  await log.close()
  expect(readFileSync(`${path}.1`, 'utf8')).toContain('before')
  expect(readFileSync(`${path}.1`, 'utf8')).not.toContain('after')
  expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ event: 'after' })
})
