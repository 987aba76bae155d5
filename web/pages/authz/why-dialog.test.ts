/** The explanation of a denial: earlier attempts, evidence and labels. */
import { expect, test } from 'bun:test'
import type { TraceEvent } from '../../api/api.ts'
import { attempts, deedOf, evidenceOf, isRefusal, targetOf, verdictOf } from './why-dialog.tsx'

const event = (fields: Partial<TraceEvent>): TraceEvent => ({
  id: 'e',
  siteId: 's',
  sessionId: 'x',
  occurredAt: '2026-11-20T12:00:00Z',
  type: 'authz.evaluated',
  outcome: 'success',
  ...fields,
})

test('a denial is a decision or, without one, a blocked event; a blocked call is not another denial', () => {
  expect(isRefusal(event({ policy: { decision: 'deny' } }))).toBe(true)
  expect(isRefusal(event({ outcome: 'blocked' }))).toBe(true)
  expect(isRefusal(event({ outcome: 'blocked', policy: { decision: 'review' } }))).toBe(false)
  expect(isRefusal(event({ outcome: 'blocked', type: 'tool.executed' }))).toBe(false)
  expect(verdictOf(event({ policy: { decision: 'review' } }))).toBe('Held for review')
  expect(verdictOf(event({}))).toBe('Allowed')
})

test('attempts: earlier denials, and those for the same tool', () => {
  const eventsBefore = [
    event({ outcome: 'blocked', tool: 'pay' }),
    event({ outcome: 'blocked', tool: 'pay', type: 'tool.executed' }),
    event({ outcome: 'blocked', tool: 'add' }),
    event({ outcome: 'blocked' }),
    event({ tool: 'pay' }),
  ]
  expect(attempts(event({ tool: 'pay' }), eventsBefore)).toEqual({ refusals: 3, sameTool: 1 })
  expect(attempts(event({}), eventsBefore)).toEqual({ refusals: 3, sameTool: 0 })
})

test('evidence from signals of any form', () => {
  const agent = { userAgent: 'x/1', confidence: 0.934, signals: { webdriver: true, score: 3 } }
  expect(evidenceOf(event({ agent } as Partial<TraceEvent>))).toEqual([
    { name: 'Confidence', text: '93 %' },
    { name: 'Signals', text: 'webdriver, score 3' },
    { name: 'User agent', text: 'x/1' },
  ])
  const listed = event({ agent: { signals: ['a', 2] } } as unknown as Partial<TraceEvent>)
  expect(evidenceOf(listed)).toEqual([{ name: 'Signals', text: 'a, 2' }])
  expect(evidenceOf(event({ agent: null }))).toEqual([])
})

test('an unknown type is shown by its name', () => {
  expect(deedOf(event({ type: 'shop.opened' }))).toBe('shop.opened')
  expect(deedOf(event({ type: 'constructor' }))).toBe('constructor')
})

test('an earlier event names its tool, or the page that was requested', () => {
  const metadata = { page: '/checkout' }
  const sentence = (fields: Partial<TraceEvent>) =>
    `${deedOf(event(fields))} ${targetOf(event(fields))}`.trim()
  expect(sentence({ type: 'authz.evaluated', tool: 'cart.add', metadata })).toBe('Asked for cart.add')
  expect(sentence({ type: 'authz.evaluated', tool: null, metadata })).toBe('Asked for /checkout')
  expect(sentence({ type: 'authz.evaluated', tool: null, metadata: null })).toBe('Asked for access')
  expect(sentence({ type: 'agent.requested', tool: null, metadata })).toBe('Requested /checkout')
  expect(sentence({ type: 'agent.detected', tool: null, metadata })).toBe('Detected')
})
