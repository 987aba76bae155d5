/** The fast row writer produces the same bytes as `csvRow`. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { validEvent } from '../../../tests/fuzz/any-event.ts'
import { exampleEvent } from '../../../tests/support/events.ts'
import { csvRow } from '../../text/csv.ts'
import { csvColumns, eventCells, eventRows, type ExportedEvent } from './export.ts'

const exported = (json: string): ExportedEvent => ({
  json,
  receivedAtMs: Date.UTC(2026, 5, 23, 12),
  provenance: {
    door: 'events',
    key: 'key_1',
    verdict: 'verified',
    judgedBy: 'sender',
    observedBy: null,
    evidence: null,
    network: '=cmd,"x"',
  },
})

const plain = (events: ExportedEvent[], guard: boolean): string =>
  events.map((event) => csvRow([...eventCells(event), event.json], guard)).join('')

test('matches `csvRow` for any events, with and without the guard', () => {
  fc.assert(
    fc.property(fc.array(validEvent, { maxLength: 6 }), fc.boolean(), (events, guard) => {
      const jsons = events.map((event) => exported(JSON.stringify(event)))
      expect(new TextDecoder().decode(eventRows(jsons, guard))).toBe(plain(jsons, guard))
    }),
  )
})

test('matches `csvRow` for the largest events, quotes and wide characters', () => {
  const long = (filler: string) => JSON.stringify({ ...exampleEvent, metadata: { x: filler.repeat(20_000) } })
  const texts = [long('"'), JSON.stringify(exampleEvent), long('€'), long('\u{1f600}'), long('=')]
  const jsons = texts.map(exported)
  expect(new TextDecoder().decode(eventRows(jsons, true))).toBe(plain(jsons, true))
  expect(new TextDecoder().decode(eventRows(jsons.slice(1, 2), true))).toBe(plain(jsons.slice(1, 2), true))
})

test('a row has a cell for every column', () => {
  expect(eventCells(exported(JSON.stringify(exampleEvent))).length + 1).toBe(csvColumns.length)
})
