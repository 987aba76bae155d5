/** Each delivery is listed once in its newest state; labels match the state; filters come from the URL. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Delivery, Endpoint } from '../../api/webhook-api.ts'
import { createWebhooksModel, deliveryFilterOf, joined } from './model.ts'
import { adviceFor, errorParts, healthOf } from './labels.ts'

const delivery = (id: string, fields: Partial<Delivery> = {}): Delivery => ({
  id,
  endpointId: null,
  url: 'http://x/',
  status: 'pending',
  attempts: 0,
  nextAttemptAt: null,
  waitingFor: null,
  lastError: null,
  lastStatus: null,
  scheduledAt: '',
  deliveredAt: null,
  ...fields,
})

test('joining lists each delivery once, in its newest state', () => {
  const ids = fc.uniqueArray(fc.nat(40).map(String))
  fc.assert(
    fc.property(ids, ids, (newest, older) => {
      const list = joined(
        newest.map((id) => delivery(id, { attempts: 2 })),
        older.map((id) => delivery(id, { attempts: 1 })),
      )
      expect(new Set(list.map((item) => item.id)).size).toBe(list.length)
      expect(list.length).toBe(new Set([...newest, ...older]).size)
      for (const id of newest) expect(list.find((item) => item.id === id)?.attempts).toBe(2)
    }),
  )
})

test('the URL filters by known states only', () => {
  const filterOf = (search: string) => deliveryFilterOf(new URLSearchParams(search))
  expect(filterOf('status=dead_letter&endpoint=ep_1')).toEqual({ status: 'dead_letter', endpointId: 'ep_1' })
  expect(filterOf('status=constructor&endpoint=')).toEqual({ status: null, endpointId: null })
})

test('older pages remain when the newest page is refreshed', async () => {
  const pages = new Map([
    [null, { deliveries: [delivery('d'), delivery('c')], nextCursor: 'more' }],
    ['more', { deliveries: [delivery('b'), delivery('a')], nextCursor: null }],
  ])
  const model = createWebhooksModel({
    deliveries: async (_filter, cursor) => pages.get(cursor as null) ?? { deliveries: [], nextCursor: null },
    endpoints: async () => [],
    notices: async () => [],
    incidents: async () => [],
  })
  const ids = () => model.shown.value?.deliveries.map((item) => item.id)
  model.start({ status: null, endpointId: null })
  await Bun.sleep(1)
  expect([ids(), model.hasOlder.value]).toEqual([['d', 'c'], true])
  await model.loadOlder()
  expect([ids(), model.hasOlder.value]).toEqual([['d', 'c', 'b', 'a'], false])
  pages.set(null, { deliveries: [delivery('e'), delivery('d'), delivery('c')], nextCursor: 'more' })
  model.refresh()
  await Bun.sleep(1)
  expect([ids(), model.hasOlder.value]).toEqual([['e', 'd', 'c', 'b', 'a'], false])
  model.stop()
})

test('labels for health and errors, and advice', () => {
  const endpoint = {
    status: 'active',
    pausedReason: null,
    failingSince: null,
    lastSuccessAt: 'x',
    delivered: 1,
  }
  const health = (fields: object) => healthOf({ ...endpoint, ...fields } as unknown as Endpoint).label
  expect(health({})).toBe('healthy')
  expect(health({ failingSince: 'x' })).toBe('failing')
  expect(health({ status: 'paused', pausedReason: 'failing', failingSince: 'x' })).toBe('paused: failing')
  expect(health({ lastSuccessAt: null, delivered: 0 })).toBe('no deliveries yet')
  expect(errorParts('timeout: no answer: 15 s')).toEqual({ code: 'timeout', message: 'no answer: 15 s' })
  const attempt = { at: '', durationMs: 1, responseExcerpt: '', error: 'status: answered', status: 404 }
  expect(adviceFor(attempt)).toContain('path')
  expect(adviceFor({ ...attempt, status: 503 })).toContain('log')
})
