/** Tests of group commit on the calling side, with a writer that answers when told to. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { StoreError } from '../errors.ts'
import type { EventBatch, EventRecord } from '../store.ts'
import { appendQueue } from './append-queue.ts'
import type { AppendOutcome } from './protocol.ts'

interface Sent {
  batches: EventBatch[]
  answer(outcomes: AppendOutcome[]): void
  fail(error: StoreError): void
}

function fakeWriter(): { send(batches: EventBatch[]): Promise<AppendOutcome[]>; sent: Sent[] } {
  const sent: Sent[] = []
  const send = (batches: EventBatch[]): Promise<AppendOutcome[]> =>
    new Promise((answer, fail) => sent.push({ batches, answer, fail }))
  return { send, sent }
}

function batch(orgId: string, events: number, chars = 10): EventBatch {
  const event = { id: 'e', json: 'x'.repeat(chars) } as EventRecord
  return { orgId, keyId: 'k', receivedAtMs: 0, events: Array.from({ length: events }, () => event) }
}

const accept = ({ batches }: Sent): AppendOutcome[] =>
  batches.map(({ events }) => ({ accepted: events.length, deduped: 0, rejected: [], lastSeq: 1 }))

test('what waits while two groups are outstanding travels together in the next', async () => {
  const { send, sent } = fakeWriter()
  const queue = appendQueue(send, () => {})
  const results = Array.from({ length: 7 }, (_, n) => queue.append(batch(`org_${n}`, 1)))
  expect(sent.map((group) => group.batches.length)).toEqual([1, 1])
  sent[0]?.answer(accept(sent[0]))
  await results[0]
  await Bun.sleep(0)
  expect(sent.map((group) => group.batches.map(({ orgId }) => orgId))).toEqual([
    ['org_0'],
    ['org_1'],
    ['org_2', 'org_3', 'org_4', 'org_5', 'org_6'],
  ])
  for (const group of sent.slice(1)) group.answer(accept(group))
  expect((await Promise.all(results)).length).toBe(7)
})

test('each batch of a group gets its own outcome, and only accepted events wake the watchers', async () => {
  const { send, sent } = fakeWriter()
  const heard: string[][] = []
  const queue = appendQueue(send, (orgIds) => heard.push(orgIds))
  const first = [queue.append(batch('a', 1)), queue.append(batch('b', 1))]
  const third = queue.append(batch('c', 1)).catch((error: StoreError) => error.kind)
  const fourth = queue.append(batch('d', 1))
  for (const group of sent.slice(0, 2)) group.answer(accept(group))
  await Promise.all(first)
  await Bun.sleep(0)
  const deduped = { accepted: 0, deduped: 1, rejected: [], lastSeq: 0 }
  sent[2]?.answer([{ kind: 'internal', message: 'bad' }, deduped])
  expect(await third).toBe('internal')
  expect(await fourth).toEqual(deduped)
  expect(heard).toEqual([['a'], ['b']])
})

test('a group that fails whole fails each of its batches, and the next group still goes', async () => {
  const { send, sent } = fakeWriter()
  const queue = appendQueue(send, () => {})
  const failed = queue.append(batch('a', 1)).catch((error: StoreError) => error.kind)
  sent[0]?.fail(new StoreError('storage_full', 'no room'))
  expect(await failed).toBe('storage_full')
  await queue.drained()
  expect(queue.pressure()).toEqual({ queuedBytes: 0, oldestMs: 0 })
  const next = queue.append(batch('a', 2))
  if (sent[1] !== undefined) sent[1].answer(accept(sent[1]))
  expect(await next).toMatchObject({ accepted: 2 })
})

test('pressure counts what waits and what is outstanding, and the age of the oldest', async () => {
  const { send, sent } = fakeWriter()
  const queue = appendQueue(send, () => {})
  const results = [100, 200, 300].map((chars) => queue.append(batch('a', 1, chars)))
  expect(queue.pressure().queuedBytes).toBe(600)
  await Bun.sleep(20)
  expect(queue.pressure().oldestMs).toBeGreaterThanOrEqual(15)
  while (sent.length < 3) {
    for (const group of sent) group.answer(accept(group))
    await Bun.sleep(0)
  }
  for (const group of sent) group.answer(accept(group))
  await Promise.all(results)
  await queue.drained()
  expect(queue.pressure()).toEqual({ queuedBytes: 0, oldestMs: 0 })
})

test('whatever arrives: two groups at most, every batch once and in order, no group above the limits', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 1_000 }), { minLength: 1, maxLength: 60 }),
      async (sizes) => {
        const { send, sent } = fakeWriter()
        const queue = appendQueue(send, () => {})
        const results = sizes.map((size, n) => queue.append(batch(`org_${n}`, size)))
        let answered = 0
        while (answered < sent.length) {
          expect(sent.length - answered).toBeLessThanOrEqual(2)
          const group = sent[answered++]
          if (group !== undefined) group.answer(accept(group))
          await Bun.sleep(0)
        }
        expect((await Promise.all(results)).map(({ accepted }) => accepted)).toEqual(sizes)
        const order = sent.flatMap((group) => group.batches.map(({ orgId }) => orgId))
        expect(order).toEqual(sizes.map((_, n) => `org_${n}`))
        for (const { batches } of sent) {
          const events = batches.reduce((sum, one) => sum + one.events.length, 0)
          expect(batches.length === 1 || events <= 4_000).toBe(true)
        }
      },
    ),
    { numRuns: 50 },
  )
})
