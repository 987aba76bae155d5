/** Ids, sessions and texts of a block come back, whatever they contain and in whatever order they are read. */
import { expect, test } from 'bun:test'
import { joinText, splitText } from '../../../rules/event-record.ts'
import fc from 'fast-check'
import {
  type Spilled,
  holdsId,
  openBodies,
  openIdFrame,
  openIds,
  openNames,
  openSessions,
  packBodies,
  packNames,
  textFinder,
  textMatcher,
} from './texts.ts'
import { runs } from '../../../../tests/support/runs.ts'

test('any names come back, and each id is in the frame of its row alone', () => {
  const texts = fc.uniqueArray(fc.string({ unit: 'grapheme' }), { minLength: 1, maxLength: 256, size: 'max' })
  fc.assert(
    fc.property(texts, (textList) => {
      const ids = textList.map((text) => JSON.stringify(text))
      const sessions = ids.toReversed()
      const packed = packNames(ids, sessions)
      expect(openIds(packed, ids.length)).toEqual(ids)
      expect(openSessions(packed, ids.length)).toEqual(sessions)
      expect(ids.every((id) => holdsId(packed, ids.length, id))).toBe(true)
      expect(holdsId(packed, ids.length, '"never sent, and long enough"')).toBe(false)
      const single = openNames(packed, ids.length)
      expect(ids.map((_, row) => [single.id(row), single.session(row)])).toEqual(
        ids.map((id, row) => [id, sessions[row]!]),
      )
      expect(openIdFrame(packed, ids.length)).toBeNull()
      for (let row = 0; row < ids.length; row += 64) {
        const frame = openIdFrame(packed, row)!
        expect([frame.firstRow, frame.rows]).toEqual([row, Math.min(64, ids.length - row)])
        const matches = ids.map((id) => frame.has(id))
        expect(matches).toEqual(ids.map((_, index) => index >= row && index < row + 64))
        expect(frame.has('"never sent, and long enough"')).toBe(false)
      }
    }),
    { numRuns: runs(60) },
  )
})

const texts = fc.array(fc.json(), { minLength: 1, maxLength: 256, size: 'max' })
const spilled = fc.array(
  fc.tuple(
    fc.nat({ max: 255 }),
    fc.nat({ max: 13 }),
    fc.string({ unit: 'grapheme' }),
  ) as fc.Arbitrary<Spilled>,
  { maxLength: 5 },
)

function expectAll(packed: Uint8Array, textList: string[], list: Spilled[]): void {
  const bodies = openBodies(packed, textList.length)
  for (let row = textList.length - 1; row >= 0; row--) expect(bodies.text(row)).toBe(textList[row]!)
  expect(bodies.spilled()).toEqual(list)
}

test('any texts come back, whichever is read first', () => {
  fc.assert(
    fc.property(texts, spilled, fc.nat(), (textList, list, ask) => {
      const packed = packBodies(textList, list)
      const row = ask % textList.length
      expect(openBodies(packed, textList.length).text(row)).toBe(textList[row]!)
      expect(openBodies(packed, textList.length).spilled()).toEqual(list)
      expectAll(packed, textList, list)
    }),
    { numRuns: runs(60) },
  )
})

test('a deleted event leaves an empty text', () => {
  expectAll(packBodies(['{"a":1}', '', '{}'], []), ['{"a":1}', '', '{}'], [])
})

test('a block of schema 10, one piece, is read', () => {
  fc.assert(
    fc.property(texts, spilled, (textList, list) => {
      const json = list.length === 0 ? '' : JSON.stringify(list)
      expectAll(Bun.zstdCompressSync(`${textList.join('\0')}\0${json}\0`, { level: 1 }), textList, list)
    }),
    { numRuns: runs(40) },
  )
})

test('a blob that ends early is rejected', () => {
  const packed = packBodies(['{"a":1}'], [])
  expect(() => openBodies(packed.subarray(0, packed.length - 4), 1).text(0)).toThrow()
  expect(() => openBodies(packed, 1).text(640)).toThrow('out of range')
})

function comesBack(json: string, id: string, session: string): ReturnType<typeof splitText> {
  const parts = splitText(json, JSON.stringify(id), JSON.stringify(session))
  expect(joinText(parts, JSON.stringify(id), JSON.stringify(session))).toBe(json)
  return parts
}

test('id and session are cut out in either order', () => {
  const { text } = comesBack('{"id":"evt_1","sessionId":"ses_1","n":1}', 'evt_1', 'ses_1')
  expect(text).toBe('{"id":,"sessionId":,"n":1}')
  expect(comesBack('{"sessionId":"ses_1","id":"evt_1"}', 'evt_1', 'ses_1').text).toBe('{"sessionId":,"id":}')
})

test('a value that is not the first of its name stays', () => {
  const json = '{"a":{"id":"other"},"id":"evt_1"}'
  expect(comesBack(json, 'evt_1', 'ses_1')).toEqual({ text: json, idAt: 0, sessionAt: 0 })
})

test('any object comes back, with any fields of the same names', () => {
  const text = fc.oneof(fc.string(), fc.constantFrom('', '"', '"id":', '\\', 'e', '"sessionId":"x"'))
  const member = fc.tuple(fc.constantFrom('id', 'sessionId', 'x', '"id":'), fc.oneof(text, fc.object()))
  fc.assert(
    fc.property(fc.array(member), text, text, fc.boolean(), (members, id, session, spaced) => {
      const object = Object.fromEntries([...members, ['id', id], ['sessionId', session]])
      comesBack(JSON.stringify(object, null, spaced ? 1 : 0), id, session)
      comesBack(JSON.stringify(Object.fromEntries(members)), id, session)
    }),
    { numRuns: runs(500) },
  )
})

const holds = (value: unknown, part: string) => textMatcher(part)(JSON.stringify(value))

test('finds a part of any text, at any depth, whatever its case', () => {
  const event = { id: 'evt_1', agent: { vendor: 'OpenAI' }, metadata: { list: [{ a: 'Straße "x" \n\\' }] } }
  for (const part of ['EVT_', 'openai', 'STRASSE', 'straße', '"X"', '\n', '\\', 'ße "'])
    expect([part, holds(event, part)]).toEqual([part, true])
  expect(holds({ a: 'ΟΔΟΣ' }, 'οδος')).toBe(true)
  expect(holds({ a: 'ΟΔΟΣ ΑΒΓ' }, 'δος αβ')).toBe(true)
})

test('names of fields, numbers and structure are not texts', () => {
  const event = { vendor: 'x', n: 12345, ok: true, none: null }
  for (const part of ['vendor', '12345', 'true', 'null', '":"', '{', 'x"'])
    expect([part, holds(event, part)]).toEqual([part, false])
})

test('every part of a text is found', () => {
  const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 })
  fc.assert(
    fc.property(text, text, text, (prefix, part, suffix) => {
      expect(holds({ a: [prefix + part + suffix] }, part)).toBe(true)
    }),
  )
})

test('rows that are stored together are searched as each alone is', () => {
  // Letters whose other case is another letter, several, or ASCII.
  const letters = [
    ...'aAsSkKiI1 "\\\n',
    'ß',
    'ẞ',
    'ſ',
    'ı',
    'İ',
    'K',
    'ŉ',
    'ǰ',
    'ﬁ',
    'σ',
    'ς',
    'Σ',
    'µ',
    'ÿ',
    '€',
    '😀',
  ]
  const text = fc.string({ unit: fc.constantFrom(...letters), maxLength: 6 })
  fc.assert(
    fc.property(fc.array(text, { minLength: 1, maxLength: 3 }), text, (values, part) => {
      const texts = values.map((value) => JSON.stringify({ value }))
      const block = {
        *textsNear() {
          yield Buffer.from(`${texts.join('\0')}\0`)
          yield Buffer.alloc(0)
        },
        event: (row: number) => ({ json: texts[row]! }),
      }
      const hasText = textFinder(part)
      for (const [row, json] of texts.entries()) expect(hasText(block, row)).toBe(textMatcher(part)(json))
    }),
  )
})

test('64 rows are searched at once, and only those near the text are opened', () => {
  const read = { near: 0, events: 0 }
  const block = {
    *textsNear(row: number) {
      read.near++
      yield Buffer.from(row < 64 ? 'a needle' : 'hay')
    },
    event(row: number) {
      read.events++
      return { json: JSON.stringify({ value: row === 7 ? 'Needle' : 'hay' }) }
    },
  }
  const hasText = textFinder('needle')
  const matchingRows = Array.from({ length: 256 }, (_, row) => row).filter((row) => hasText(block, row))
  expect([matchingRows, read]).toEqual([[7], { near: 4, events: 64 }])
})
