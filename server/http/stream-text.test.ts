/** Streamed responses: generated no faster than they are read, closed when generating fails or the reader stalls. */
import { expect, test } from 'bun:test'
import { streamText } from './response.ts'

function watched(parts: AsyncGenerator<string>, stallMs = 5_000) {
  const ends: unknown[] = []
  return { ends, stream: streamText({ parts, stallMs, ended: (failed) => ends.push(failed) }) }
}

test('sends the parts in order and reports the end once', async () => {
  const { ends, stream } = watched(
    (async function* () {
      yield 'a'
      yield 'ü'
    })(),
  )
  expect(await new Response(stream).text()).toBe('aü')
  expect(ends).toEqual([null])
})

test('generates nothing ahead of the reader', async () => {
  let made = 0
  const { stream } = watched(
    (async function* () {
      for (;;) yield `part ${made++}`
    })(),
  )
  const reader = stream.getReader()
  for (let n = 0; n < 3; n++) await reader.read()
  await Bun.sleep(20)
  expect(made).toBeLessThanOrEqual(4)
  await reader.cancel()
})

test('an error of the generator reaches the reader', async () => {
  const { ends, stream } = watched(
    (async function* () {
      yield 'a'
      throw new Error('gone')
    })(),
  )
  const seen = await new Response(stream).text().catch((error: unknown) => String(error))
  expect(seen).toContain('gone')
  expect(ends.map(String)).toEqual(['Error: gone'])
})

test('a reader that disconnects ends the generator', async () => {
  let closed = false
  const { ends, stream } = watched(
    (async function* () {
      try {
        for (;;) yield 'x'
      } finally {
        closed = true
      }
    })(),
  )
  const reader = stream.getReader()
  await reader.read()
  await reader.cancel()
  expect([closed, ends]).toEqual([true, [null]])
})

test('a reader that stalls is disconnected', async () => {
  const { ends, stream } = watched(
    (async function* () {
      for (;;) yield 'x'
    })(),
    30,
  )
  const reader = stream.getReader()
  await reader.read()
  await Bun.sleep(100)
  const read = await reader.read().catch((error: unknown) => String(error))
  expect(read).toContain('read nothing for 30 ms')
  expect(ends.length).toBe(1)
})
