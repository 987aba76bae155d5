/** The moment from which Overview reports, and what it says and links. */
import { expect, test } from 'bun:test'
import { hrefOf, lookAgain, moreText, newerLook, parseLook, seeAll, sentenceOf } from './model.ts'
import type { Change } from '../../api/api.ts'

const timeMs = (day: number, hour: number, minute = 0): number => Date.UTC(2026, 10, day, hour, minute)
const iso = (ms: number): string => new Date(ms).toISOString()

test('the first report covers 24 hours; a visit keeps its report; the next one begins where it ended', () => {
  const first = lookAgain(null, timeMs(10, 9))
  expect(first).toEqual({ since: iso(timeMs(9, 9)), at: iso(timeMs(10, 9)), hidden: [], shown: [] })
  const reloaded = lookAgain({ ...first, shown: ['tool pay'] }, timeMs(10, 9, 20))
  expect(reloaded).toEqual({ ...first, at: iso(timeMs(10, 9, 20)), shown: ['tool pay'] })
  const nextDay = lookAgain(reloaded, timeMs(11, 8))
  expect(nextDay).toEqual({
    since: iso(timeMs(10, 9, 20)),
    at: iso(timeMs(11, 8)),
    shown: [],
    hidden: ['tool pay'], // the report begins at 9:00, and showed it
  })
  const look = seeAll({ ...nextDay, shown: ['operator Manus'] }, timeMs(11, 8, 5))
  expect(look).toEqual({
    since: iso(timeMs(11, 8, 5)),
    at: iso(timeMs(11, 8, 5)),
    shown: [],
    hidden: ['tool pay', 'operator Manus'],
  })
})

test('what is marked as seen is hidden also when another clock is ahead, and no more than the server stores', () => {
  const ahead = {
    since: iso(timeMs(10, 9, 30)),
    at: iso(timeMs(10, 9, 30)),
    hidden: ['tool a'],
    shown: ['tool a', 'tool b'],
  }
  expect(seeAll(ahead, timeMs(10, 9))).toMatchObject({ since: ahead.since, hidden: ['tool a', 'tool b'] })
  const toolNames = Array.from({ length: 100 }, (_, n) => `tool ${n}`)
  expect(seeAll({ ...ahead, hidden: toolNames, shown: ['tool new'] }, timeMs(10, 10)).hidden).toEqual([
    ...toolNames.slice(1),
    'tool new',
  ])
})

test('a report covers at most 30 days; what another program stored, or a future time, does no harm', () => {
  const read = (stored: object) => parseLook(JSON.stringify(stored))
  const old = { since: iso(timeMs(1, 0)), at: iso(timeMs(1, 0)) }
  const later = Date.UTC(2027, 3, 1)
  expect(lookAgain(read(old), later).since).toBe(iso(later - 30 * 86_400_000))
  for (const text of ['', 'x y', '[]', 'null', '{"since":1,"at":[]}', '{"since":"2026-11-01"}'])
    expect(lookAgain(parseLook(text), timeMs(10, 9)).since).toBe(iso(timeMs(9, 9)))
  const ahead = { since: iso(later), at: iso(later) }
  expect(lookAgain(read(ahead), timeMs(10, 9)).since).toBe(iso(timeMs(10, 9)))
  expect(lookAgain(read({ ...old, hidden: 3, shown: [null] }), timeMs(1, 0)).hidden).toEqual([])
})

test('of the account and this browser the report that began later counts', () => {
  const look = (since: number, last: number) => ({
    since: iso(timeMs(since, 9)),
    at: iso(timeMs(last, 9)),
    hidden: [],
    shown: [],
  })
  const account = look(10, 12)
  const seen = look(11, 11)
  const later = look(10, 13)
  expect(newerLook(account, seen)).toBe(seen)
  expect(newerLook(account, later)).toBe(later)
  expect(newerLook(account, { ...account })).toBe(account)
  expect([newerLook(null, seen), newerLook(account, null), newerLook(null, null)]).toEqual([
    seen,
    account,
    null,
  ])
})

const change = (fields: Partial<Change>): Change => ({
  kind: 'operator',
  name: 'Manus',
  claims: null,
  count: 3,
  before: 0,
  of: null,
  unit: null,
  steps: [],
  ...fields,
})

const sentenceText = (fields: Partial<Change>): string => {
  const { before: textBefore, name, after: textAfter } = sentenceOf(change(fields))
  return `${textBefore}${name}${textAfter}`
}

test('each kind is one sentence with its number', () => {
  expect([
    sentenceText({ kind: 'impostor', name: 'GPTBot', count: 212 }),
    sentenceText({ kind: 'impostor', name: 'GPTBot', count: 1 }),
    sentenceText({ kind: 'refusedOperator', name: 'ByteDance', count: 40 }),
    sentenceText({ kind: 'refusingRule', name: 'no-buy', count: 1 }),
    sentenceText({
      kind: 'failingTool',
      name: 'cart.add',
      count: 45,
      before: 30,
      of: { count: 320, before: 1_000 },
    }),
    sentenceText({
      kind: 'failingOperator',
      name: 'OpenAI',
      count: 50,
      before: 0,
      of: { count: 100, before: 900 },
    }),
    sentenceText({ count: 1_412 }),
    sentenceText({ kind: 'tool', name: 'checkout.pay', count: 1 }),
  ]).toEqual([
    '212 requests claim to be GPTBot, and the evidence contradicts it.',
    '1 request claims to be GPTBot, and the evidence contradicts it.',
    'The site began to refuse ByteDance: 40 requests.',
    'Rule no-buy began to block: 1 decision.',
    'Tool cart.add fails more often: 14 % of 320 calls, 3 % before.',
    'Requests by OpenAI fail more often: 50 % of 100 requests, 0 % before.',
    'Manus sent its first 1,412 events.',
    'checkout.pay was called for the first time: 1 call.',
  ])
  expect(moreText({ more: { tool: 1, impostor: 12 } })).toBe('1 more new tool, 12 more impostors')
  expect(moreText({ more: {} })).toBeNull()
})

test('a link leads to the counted events and nothing else', () => {
  const range = { since: '2026-11-20T03:00:00Z', until: '2026-11-23T19:00:00Z' }
  const times = 'since=2026-11-20T03%3A00%3A00Z&until=2026-11-23T19%3A00%3A00Z'
  const claims = { vendor: 'OpenAI', agent: 'GPTBot' }
  expect(hrefOf(change({ kind: 'impostor', name: 'GPTBot', claims }), range)).toBe(
    `/logs?type=agent.requested&verdict=contradicted&vendor=OpenAI&name=GPTBot&${times}` +
      '&judgedBy=appliance&judgedBy=unknown',
  )
  expect(hrefOf(change({ kind: 'refusingRule', name: 'a&b=c' }), range)).toBe(
    `/authz?${times}&filter=rule%3Aa%26b%3Dc`,
  )
  expect(hrefOf(change({ kind: 'failingTool', name: 'cart' }), range)).toBe(
    `/logs?type=tool.executed&tool=cart&outcome=error&${times}`,
  )
})
