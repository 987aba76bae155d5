/** Each line of activity counts one event type, so that a request and its own detection are never added. */
import { expect, test } from 'bun:test'
import { measures } from '../text/measures.ts'
import { kindSeries } from './kinds.ts'

const countsOf = (count: number) => ({ count, before: 0, steps: [count, 0], outcomes: {} })

test('requests and visits are lines of their own, the unit first; types without events and other types have none', () => {
  const types = {
    'agent.detected': countsOf(2),
    'agent.requested': countsOf(5),
    'auth.identity_presented': countsOf(0),
    authz: countsOf(4),
    'tool.executed': countsOf(3),
  }
  const namesIn = (name: 'requests' | 'visits') => {
    const unit = { name, type: measures[name].type ?? '', label: '', comparable: true, beside: null }
    return kindSeries({ types, unit }).map((series) => [series.name, series.value, ...series.counts])
  }
  const requests = ['Requests', 'agent.requested', 5, 0]
  const visits = ['Visits', 'agent.detected', 2, 0]
  const calls = ['Tool calls', 'tool.executed', 3, 0]
  expect(namesIn('requests')).toEqual([requests, visits, calls])
  expect(namesIn('visits')).toEqual([visits, requests, calls])
})
