/** The live stream: every event once, in order, woken by commits, ended by its signal. */
import { expect, test } from 'bun:test'
import type { EventTail, StoredEvent } from '../../../db/contract/store.ts'
import { liveEvents, type LiveItem } from './routes.ts'

/** An in-memory event log that commits while streams read, like the store. */
function memoryLog() {
  const rows: StoredEvent[] = []
  const listeners = new Set<(orgIds: string[]) => void>()
  return {
    watching: () => listeners.size,
    commit(count: number, orgId = 'org_a') {
      for (let i = 0; i < count; i++) {
        rows.push({ seq: rows.length + 1, occurredAtMs: 0, receivedAtMs: 0, json: String(rows.length + 1) })
      }
      for (const listener of listeners) listener([orgId])
    },
    async tail(query: { afterSeq: number; limit: number }): Promise<EventTail> {
      // One snapshot, as a store reads it; commits go on while the answer travels.
      const events = rows.slice(query.afterSeq, query.afterSeq + query.limit)
      const lastSeq = events.at(-1)?.seq ?? Math.max(query.afterSeq, rows.length)
      await Bun.sleep(1)
      return { events, lastSeq }
    },
    watch(listener: (orgIds: string[]) => void) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}

function open(log: ReturnType<typeof memoryLog>, afterSeq: number, heartbeatMs = 5_000) {
  const end = new AbortController()
  const options = { orgId: 'org_a', filter: {}, signal: end.signal, heartbeatMs, lifeMs: 60_000 }
  return { end, items: liveEvents({ events: log, afterSeq, ...options }) }
}

async function take(items: AsyncGenerator<LiveItem>, count: number): Promise<string[]> {
  const seenIds: string[] = []
  while (seenIds.length < count) {
    const { value, done } = await items.next()
    if (done) break
    if (value.kind === 'events') seenIds.push(...value.events.map((event) => event.json))
  }
  return seenIds
}

const numbers = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, i) => String(from + i))

test('yields stored events, then newly committed ones, each once and in order', async () => {
  const log = memoryLog()
  log.commit(450)
  const { end, items } = open(log, 0)
  expect(await take(items, 450)).toEqual(numbers(1, 450))
  const pending = take(items, 7)
  await Bun.sleep(5)
  log.commit(3)
  log.commit(4)
  expect(await pending).toEqual(numbers(451, 457))
  end.abort()
  expect((await items.next()).done).toBe(true)
  expect(log.watching()).toBe(0)
})

test('a commit during a read is not missed', async () => {
  const log = memoryLog()
  const { end, items } = open(log, 0)
  const pending = take(items, 40)
  for (let i = 0; i < 40; i++) {
    log.commit(1)
    if (i % 3 === 0) await Bun.sleep(1)
  }
  expect(await pending).toEqual(numbers(1, 40))
  end.abort()
})

test('yields `quiet` when nothing arrives; other organizations do not wake it', async () => {
  const log = memoryLog()
  const { end, items } = open(log, 0, 20)
  expect(await items.next()).toEqual({ done: false, value: { kind: 'quiet', lastSeq: 0 } })
  end.abort()
  await items.return(undefined)
  expect(log.watching()).toBe(0)
})
