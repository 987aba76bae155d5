/** The conditions of alert rules as text, and percentages that convert without loss. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { definitionOf, measureCondition } from './measure-rule.ts'
import { isRuleKind, percent, ruleNames, ruleCondition, shareOf } from './rules.tsx'

const noLimits = { threshold: null, minutes: null, eventsMin: null }

test('the condition of each kind of rule', () => {
  const share = { ...noLimits, threshold: 0.125, eventsMin: 20 }
  expect(ruleCondition({ kind: 'blocked_share', ...share })).toBe(
    'more than 12.5 % of events in the last hour are blocked, minimum 20 events',
  )
  expect(ruleCondition({ kind: 'tool_error_rate', ...share })).toBe(
    'more than 12.5 % of a tool’s calls in the last hour fail, minimum 20 calls',
  )
  expect(ruleCondition({ kind: 'silence', ...noLimits, minutes: 1 })).toBe('no events for 1 minute')
  expect(ruleCondition({ kind: 'silence', ...noLimits, minutes: 30 })).toBe('no events for 30 minutes')
})

test('the condition of a share names the part and the whole', () => {
  const rule: Parameters<typeof measureCondition>[0] = {
    measure: 'share',
    filter: { type: ['agent.requested'] },
    of: { outcome: ['blocked'] },
    condition: { kind: 'above', value: 0.2 },
    windowMinutes: 60,
    groupBy: 'vendor',
  }
  expect(measureCondition(rule)).toBe(
    'share of events with outcome:blocked above 20 % in 1 hour, by vendor, only type:agent.requested',
  )
  expect(measureCondition({ ...rule, filter: {}, groupBy: null })).toBe(
    'share of events with outcome:blocked above 20 % in 1 hour',
  )
})

test('a kind is one of the six, never an inherited property of Object', () => {
  expect(Object.keys(ruleNames).filter(isRuleKind)).toHaveLength(6)
  expect(['constructor', ''].filter(isRuleKind)).toEqual([])
})

test('saving the form of a rule changes only what the form has', () => {
  const form = new FormData()
  for (const [name, value] of Object.entries({ measure: 'count', condition: 'above', value: '5' }))
    form.set(name, value)
  expect(definitionOf(form)).toMatchObject({ measure: 'count', condition: { kind: 'above', value: 5 } })
  expect(Object.keys(definitionOf(form))).not.toContain('groupsMax')
})

test('a percentage with three decimals converts to a share and back', () => {
  fc.assert(
    fc.property(fc.nat(100_000), (thousandths) => {
      const percentage = thousandths / 1_000
      expect(percent(shareOf(percentage))).toBe(percentage)
    }),
  )
})
