/** The summary before an erasure. */
import { expect, test } from 'bun:test'
import { erasureSummary } from './erase.tsx'

test('the summary names the number of events, none, or too many to count', () => {
  expect(erasureSummary(1)).toStartWith('1 event is erased. Related counts and copies')
  expect(erasureSummary(34_369)).toStartWith('34,369 events are erased. Related counts and copies')
  expect(erasureSummary(null)).toStartWith('All matching events are erased.')
  expect(erasureSummary(0)).toContain('case matters')
})
