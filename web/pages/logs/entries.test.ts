/** Laws of the Logs rows: every event once, arrivals on top in order, history below in order, bounded. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { ReceivedEvent } from '../../api/api.ts'
import { addArrivals, addOlder, emptyList, trim } from './entries.ts'

function received(n: number): ReceivedEvent {
  const occurredAt = new Date(1_782_216_000_000 + n * 1_000).toISOString()
  const event = {
    id: `evt_${n}`,
    siteId: 's',
    sessionId: 'x',
    occurredAt,
    type: 'agent.detected',
    outcome: 'success',
  }
  return { receivedAt: occurredAt, event }
}

const ids = (list: { entries: { id: string }[] }): string[] => list.entries.map((entry) => entry.id)

test('new events are added on top, newest first, and history below', () => {
  let list = addOlder(emptyList, [received(3), received(2)])
  list = addArrivals(list, [received(4), received(5)])
  list = addOlder(list, [received(1)])
  expect(ids(list)).toEqual(['evt_5', 'evt_4', 'evt_3', 'evt_2', 'evt_1'])
  expect(list.entries.map((entry) => entry.alone)).toEqual([true, true, false, false, false])
})

test('law: overlapping pages cause no duplicate and no gap', () => {
  const steps = fc.array(fc.record({ live: fc.boolean(), numbers: fc.array(fc.nat(40), { maxLength: 12 }) }))
  fc.assert(
    fc.property(steps, (stepList) => {
      let list = emptyList
      for (const step of stepList) {
        list = step.live
          ? addArrivals(list, step.numbers.map(received))
          : addOlder(list, step.numbers.map(received))
      }
      const sentIds = new Set(stepList.flatMap((step) => step.numbers.map((n) => `evt_${n}`)))
      expect(ids(list).toSorted()).toEqual([...sentIds].toSorted())
      expect(list.ids).toEqual(sentIds)
    }),
  )
})

test('trimming keeps the top and returns the time from which history must be fetched again', () => {
  const list = addOlder(emptyList, [received(9), received(8), received(7), received(6)])
  const { list: newest, latestRemovedMs } = trim(list, 2)
  expect(ids(newest)).toEqual(['evt_9', 'evt_8'])
  expect(latestRemovedMs).toBe(Date.parse(received(7).event.occurredAt))
  expect(ids(addOlder(newest, [received(8), received(7)]))).toEqual(['evt_9', 'evt_8', 'evt_7'])
  expect(trim(newest, 2).latestRemovedMs).toBeNull()
})

test('lists are immutable', () => {
  const listBefore = addOlder(emptyList, [received(1)])
  addArrivals(listBefore, [received(2)])
  expect(ids(listBefore)).toEqual(['evt_1'])
  expect(emptyList.ids.size).toBe(0)
})
