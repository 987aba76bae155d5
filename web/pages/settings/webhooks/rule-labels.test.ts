/** Rules are told in whole sentences, and a percentage is the same share again. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { isRuleKind, percent, ruleNames, ruleSentence, shareOf } from './rule-labels.ts'

const none = { threshold: null, minutes: null, eventsMin: null }

test('what each kind of rule says', () => {
  const share = { ...none, threshold: 0.125, eventsMin: 20 }
  expect(ruleSentence({ kind: 'blocked_share', ...share })).toBe(
    'more than 12.5 % of the last hour’s events are blocked, from 20 events on',
  )
  expect(ruleSentence({ kind: 'tool_error_rate', ...share })).toBe(
    'more than 12.5 % of a tool’s calls of the last hour fail, from 20 calls on',
  )
  expect(ruleSentence({ kind: 'silence', ...none, minutes: 1 })).toBe('no event came for a minute')
  expect(ruleSentence({ kind: 'silence', ...none, minutes: 30 })).toBe('no event came for 30 minutes')
})

test('a kind is one of the five and nothing of an object’s own', () => {
  expect(Object.keys(ruleNames).filter(isRuleKind)).toHaveLength(5)
  expect(['constructor', ''].filter(isRuleKind)).toEqual([])
})

test('a percentage with three digits comes back', () => {
  fc.assert(
    fc.property(fc.nat(100_000), (thousandths) => {
      const percentage = thousandths / 1_000
      expect(percent(shareOf(percentage))).toBe(percentage)
    }),
  )
})
