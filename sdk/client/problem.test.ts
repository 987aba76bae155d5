/** How problems are reported, with and without `onError`. */
import { afterEach, expect, setSystemTime, spyOn, test } from 'bun:test'
import { reporter } from './problem.ts'

afterEach(() => {
  setSystemTime()
})

test('each kind of problem is logged at most once per minute', () => {
  const warn = spyOn(console, 'warn').mockImplementation(() => {})
  const report = reporter(undefined)
  setSystemTime(new Date('2026-11-20T00:00:00Z'))
  for (let round = 0; round < 100; round++) report({ code: 'invalid_event', message: 'no type' })
  report({ code: 'queue_full', message: 'full' })
  setSystemTime(new Date('2026-11-20T00:01:00Z'))
  report({ code: 'invalid_event', message: 'again' })
  const warnings = warn.mock.calls.map(([text]) => String(text))
  warn.mockRestore()
  expect(warnings).toEqual(['sightglass: no type', 'sightglass: full', 'sightglass: again'])
})

test('onError receives every problem, and may throw', () => {
  const heard: string[] = []
  const report = reporter(({ message }) => {
    heard.push(message)
    throw new Error('host')
  })
  for (const message of ['a', 'b']) report({ code: 'invalid_event', message })
  expect(heard).toEqual(['a', 'b'])
})
