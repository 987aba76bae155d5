/** Tests of the child-process helper: lines, exit codes, failure texts. */
import { expect, test } from 'bun:test'
import { run } from './process.ts'

const env = { PATH: process.env.PATH ?? '' }
const script = (code: string, stdin?: string) =>
  run([process.execPath, '-e', code], {
    cwd: import.meta.dir,
    env,
    ...(stdin === undefined ? {} : { stdin }),
  })
const number = (line: string): string | null => /^n=(\d+)$/.exec(line)?.[1] ?? null

test('a line is found as soon as it is complete, even when the process goes on', async () => {
  const child = script(
    "process.stdout.write('n=1'); setTimeout(() => console.log('2'), 50); setInterval(() => {}, 9e6)",
  )
  expect(await child.line(number, 5_000)).toBe('12')
  child.signal('SIGTERM')
  expect(await child.exited).toBe(143)
})

test('a last line without its newline counts once the process ended', async () => {
  expect(await script("process.stdout.write('n=7')").line(number, 5_000)).toBe('7')
})

test('an early exit is reported with what the process said', async () => {
  const child = script("console.error('no such folder'); process.exit(1)")
  expect(await child.line(number, 5_000).catch(String)).toMatch(/exited with 1[\s\S]*no such folder/)
})

test('a silent process runs into the deadline', async () => {
  const child = script('setInterval(() => {}, 9e6)')
  expect(await child.line(number, 50).catch(String)).toContain('no such line within 50 ms')
  child.signal('SIGKILL')
  expect(await child.exited).toBe(137)
})

test('standard input arrives whole and only the given environment is seen', async () => {
  const child = script(
    'console.log(await Bun.stdin.text(), Object.keys(process.env).includes("HOME"))',
    'secret\n',
  )
  expect(await child.exited).toBe(0)
  expect(child.stdout()).toBe('secret\n false\n')
})
