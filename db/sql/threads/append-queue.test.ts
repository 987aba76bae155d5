/** Group commit in the calling thread, with a scripted writer. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { StoreError } from '../../contract/errors.ts'
import type { EventBatch, EventRecord } from '../../contract/store.ts'
import { appendQueue } from './append-queue.ts'
import type { AppendOutcome, Parcel } from './protocol.ts'

interface Sent {
  batches: Parcel['batches']
  chars: number
  answer(outcomes: AppendOutcome[]): void
  fail(error: StoreError): void
}

function fakeWriter(): { send(parcels: Parcel[]): Promise<AppendOutcome[]>; sent: Sent[] } {
  const sentGroups: Sent[] = []
  const send = (parcels: Parcel[]): Promise<AppendOutcome[]> =>
    new Promise((answer, fail) => {
      const chars = parcels.reduce((sum, { text }) => sum + text.length, 0)
      sentGroups.push({ batches: parcels.flatMap(({ batches }) => batches), chars, answer, fail })
    })
  return { send, sent: sentGroups }
}

function batch(orgId: string, events: number, chars = 10): EventBatch {
  const event = { id: 'e', json: 'x'.repeat(chars) } as EventRecord
  return {
    orgId,
    keyId: 'k',
    door: 'events',
    receivedAtMs: 0,
    events: Array.from({ length: events }, () => event),
  }
}

const accept = ({ batches }: Sent): AppendOutcome[] =>
  batches.map(({ events }) => ({ accepted: events, deduped: 0, rejected: [], lastSeq: 1 }))

/** The queue sends after all messages of one tick were read. Responses take another tick. */
async function turn(): Promise<void> {
  for (let n = 0; n < 2; n++) await new Promise((resolve) => void setImmediate(resolve))
}

/** Answers until all appends are settled: what waited for an answer is sent some turns of the event loop later. */
async function settled(
  results: Promise<{ accepted: number }>[],
  answerNext: () => Promise<void>,
): Promise<number[]> {
  let isSettled = false
  const allResults = Promise.all(results).finally(() => (isSettled = true))
  while (!isSettled) await answerNext()
  return (await allResults).map(({ accepted }) => accepted)
}

test('batches of one tick, and those that wait for the outstanding group, travel together', async () => {
  const { send, sent: sentGroups } = fakeWriter()
  const queue = appendQueue(send, () => {})
  const results = [queue.append(batch('org_0', 1)), queue.append(batch('org_1', 1))]
  await turn()
  for (const n of [2, 3, 4]) results.push(queue.append(batch(`org_${n}`, 1)))
  await turn()
  expect(sentGroups.map((group) => group.batches.length)).toEqual([2])
  sentGroups[0]?.answer(accept(sentGroups[0]))
  await results[0]
  await turn()
  expect(sentGroups.map((group) => group.batches.map(({ orgId }) => orgId))).toEqual([
    ['org_0', 'org_1'],
    ['org_2', 'org_3', 'org_4'],
  ])
  sentGroups[1]?.answer(accept(sentGroups[1]))
  expect((await Promise.all(results)).length).toBe(5)
})

test('while other nodes append, a second group waits for the first, whatever its size', async () => {
  const { send, sent: sentGroups } = fakeWriter()
  let othersAppend = true
  const queue = appendQueue(send, () => {}, { othersAppend: () => othersAppend })
  const results = [queue.append(batch('a', 1))]
  await turn()
  for (let n = 0; n < 3; n++) results.push(queue.append(batch('b', 1_000)))
  await turn()
  expect(sentGroups.length).toBe(1)
  othersAppend = false
  results.push(queue.append(batch('c', 1)))
  await turn()
  expect(sentGroups.map((group) => group.batches.length)).toEqual([1, 4])
  for (const group of sentGroups) group.answer(accept(group))
  expect((await Promise.all(results)).length).toBe(5)
})

test('a second group is sent when it fills a block', async () => {
  const { send, sent: sentGroups } = fakeWriter()
  const queue = appendQueue(send, () => {})
  const results = [queue.append(batch('a', 1))]
  await turn()
  for (let n = 0; n < 3; n++) results.push(queue.append(batch('b', 100)))
  await turn()
  results.push(queue.append(batch('c', 1_000)))
  await turn()
  expect(sentGroups.map((group) => group.batches.length)).toEqual([1, 3])
  for (const group of sentGroups) group.answer(accept(group))
  await results[0]
  await turn()
  sentGroups[2]?.answer(accept(sentGroups[2]))
  expect((await Promise.all(results)).length).toBe(5)
})

test('each batch of a group gets its own outcome, and only accepted events wake the watchers', async () => {
  const { send, sent: sentGroups } = fakeWriter()
  const heard: string[][] = []
  const queue = appendQueue(send, (orgIds) => heard.push(orgIds))
  const first = queue.append(batch('a', 1))
  await turn()
  const third = queue.append(batch('c', 1)).catch((error: StoreError) => error.kind)
  const fourth = queue.append(batch('d', 1))
  sentGroups[0]?.answer(accept(sentGroups[0]))
  await first
  await turn()
  const deduped = { accepted: 0, deduped: 1, rejected: [], lastSeq: 0 }
  sentGroups[1]?.answer([{ kind: 'internal', message: 'bad' }, deduped])
  expect(await third).toBe('internal')
  expect(await fourth).toEqual(deduped)
  expect(heard).toEqual([['a']])
})

test('a group that fails whole fails each of its batches, and the next group is sent', async () => {
  const { send, sent: sentGroups } = fakeWriter()
  const queue = appendQueue(send, () => {})
  const failed = queue.append(batch('a', 1)).catch((error: StoreError) => error.kind)
  await turn()
  sentGroups[0]?.fail(new StoreError('storage_full', 'no room'))
  expect(await failed).toBe('storage_full')
  await queue.drained()
  expect(queue.pressure()).toEqual({ queuedBytes: 0, oldestMs: 0, full: true })
  const next = queue.append(batch('a', 2))
  await turn()
  if (sentGroups[1] !== undefined) sentGroups[1].answer(accept(sentGroups[1]))
  expect(await next).toMatchObject({ accepted: 2 })
  expect(queue.pressure().full).toBe(false)
})

test('a batch that found the disk full is reported as pressure, also when its group did not fail whole', async () => {
  const { send, sent: sentGroups } = fakeWriter()
  const queue = appendQueue(send, () => {})
  const failed = queue.append(batch('a', 1)).catch((error: StoreError) => error.kind)
  await turn()
  sentGroups[0]?.answer([{ kind: 'storage_full', message: 'no room' }])
  expect(await failed).toBe('storage_full')
  expect(queue.pressure().full).toBe(true)
})

test('drained waits for queued batches', async () => {
  const { send, sent: sentGroups } = fakeWriter()
  const queue = appendQueue(send, () => {})
  const result = queue.append(batch('a', 1))
  let drained = false
  void queue.drained().then(() => (drained = true))
  await Bun.sleep(5)
  expect([sentGroups.length, drained]).toEqual([1, false])
  sentGroups[0]?.answer(accept(sentGroups[0]))
  await result
  await turn()
  expect(drained).toBe(true)
})

test('pressure counts queued and outstanding batches, and the age of the oldest', async () => {
  const { send, sent: sentGroups } = fakeWriter()
  const queue = appendQueue(send, () => {})
  const batches = [100, 200, 300].map((chars) => batch('a', 1, chars))
  const results = batches.map(queue.append)
  expect(queue.pressure().queuedBytes).toBe(600)
  await Bun.sleep(20)
  const chars = sentGroups.reduce((sum, group) => sum + group.chars, 0)
  expect(chars).toBeGreaterThan(600)
  expect(queue.pressure().queuedBytes).toBe(chars)
  expect(queue.pressure().oldestMs).toBeGreaterThanOrEqual(15)
  for (const group of sentGroups) group.answer(accept(group))
  await Promise.all(results)
  await queue.drained()
  expect(queue.pressure()).toEqual({ queuedBytes: 0, oldestMs: 0, full: false })
})

test('whatever arrives: two groups at most, every batch once and in order, no group above the limits', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 1_000 }), { minLength: 1, maxLength: 60 }),
      async (sizes) => {
        const { send, sent: sentGroups } = fakeWriter()
        const queue = appendQueue(send, () => {})
        const results = sizes.map((size, n) => queue.append(batch(`org_${n}`, size)))
        let answered = 0
        const accepted = await settled(results, async () => {
          await turn()
          expect(sentGroups.length - answered).toBeLessThanOrEqual(2)
          const group = sentGroups[answered]
          if (group === undefined) return
          answered++
          group.answer(accept(group))
        })
        expect(accepted).toEqual(sizes)
        const order = sentGroups.flatMap((group) => group.batches.map(({ orgId }) => orgId))
        expect(order).toEqual(sizes.map((_, n) => `org_${n}`))
        for (const { batches } of sentGroups) {
          const events = batches.reduce((sum, orgBatch) => sum + orgBatch.events, 0)
          expect(batches.length === 1 || events <= 4_000).toBe(true)
        }
      },
    ),
    { numRuns: 50 },
  )
})

test('a writer that gathers gets the batches of each tick at once, up to the events of a group', async () => {
  const { send, sent: sentGroups } = fakeWriter()
  const queue = appendQueue(send, () => {}, { gathers: true })
  const results = [queue.append(batch('a', 1))]
  await turn()
  results.push(queue.append(batch('b', 1)), queue.append(batch('c', 1)))
  await turn()
  expect(sentGroups.map((group) => group.batches.map(({ orgId }) => orgId))).toEqual([['a'], ['b', 'c']])
  results.push(queue.append(batch('d', 4_000)))
  await turn()
  results.push(queue.append(batch('e', 96)))
  await turn()
  expect(sentGroups.length).toBe(3) // 4,003 events are outstanding
  sentGroups[2]?.answer(accept(sentGroups[2]))
  await results[3]
  await turn()
  expect(sentGroups.length).toBe(4)
  for (const group of sentGroups) group.answer(accept(group))
  expect((await Promise.all(results)).map(({ accepted }) => accepted)).toEqual([1, 1, 1, 4_000, 96])
  await queue.drained()
})

test('few events wait for a writer that has more, until they are as many, ninety-six, or it is free', async () => {
  const { send, sent: sentGroups } = fakeWriter()
  const queue = appendQueue(send, () => {}, { gathers: true })
  const results: Promise<unknown>[] = []
  const sentAfter = async (events: number) => {
    results.push(queue.append(batch('a', events)))
    await turn()
    return sentGroups.map(({ batches }) => batches.reduce((sum, orgBatch) => sum + orgBatch.events, 0))
  }
  expect(await sentAfter(60)).toEqual([60])
  expect(await sentAfter(20)).toEqual([60])
  expect(await sentAfter(39)).toEqual([60])
  expect(await sentAfter(1)).toEqual([60, 60])
  expect(await sentAfter(95)).toEqual([60, 60])
  expect(await sentAfter(1)).toEqual([60, 60, 96])
  expect(await sentAfter(5)).toEqual([60, 60, 96])
  for (const group of sentGroups) group.answer(accept(group))
  await Promise.all(results.slice(0, -1))
  await turn()
  expect(sentGroups.length).toBe(4)
  sentGroups[3]!.answer(accept(sentGroups[3]!))
  await Promise.all(results)
  await queue.drained()
})

test('whatever arrives at a writer that gathers: every batch once and in order, a bounded number outstanding', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(fc.integer({ min: 1, max: 1_000 }), { maxLength: 9 }), { maxLength: 20 }),
      fc.array(fc.boolean(), { minLength: 20, maxLength: 20 }),
      async (ticks, isAnswered) => {
        const { send, sent: sentGroups } = fakeWriter()
        const queue = appendQueue(send, () => {}, { gathers: true })
        const sizes = ticks.flat()
        const results: Promise<{ accepted: number }>[] = []
        let answered = 0
        const eventsOf = ({ batches }: Sent) => batches.reduce((sum, orgBatch) => sum + orgBatch.events, 0)
        const step = async () => {
          await turn()
          const open = sentGroups.slice(answered).map(eventsOf)
          expect(open.slice(0, -1).reduce((sum, events) => sum + events, 0)).toBeLessThan(4_000)
        }
        const answerOne = () => {
          const group = sentGroups[answered++]
          group?.answer(accept(group))
        }
        for (const [tick, arriving] of ticks.entries()) {
          for (const size of arriving) results.push(queue.append(batch(`org_${results.length}`, size)))
          await step()
          if (isAnswered[tick] === true && answered < sentGroups.length) answerOne()
        }
        const accepted = await settled(results, async () => {
          if (answered < sentGroups.length) answerOne()
          await step()
        })
        expect(accepted).toEqual(sizes)
        const order = sentGroups.flatMap((group) => group.batches.map(({ orgId }) => orgId))
        expect(order).toEqual(sizes.map((_, n) => `org_${n}`))
        for (const group of sentGroups)
          expect(group.batches.length === 1 || eventsOf(group) <= 4_000).toBe(true)
        await queue.drained()
        expect(queue.pressure().queuedBytes).toBe(0)
      },
    ),
    { numRuns: 50 },
  )
})
