/** The shared stream: each tab receives each of its events once, whenever tabs join and connections break. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { ReceivedEvent } from '../api/event-shapes.ts'
import { followLive } from './live.ts'
import { createHub, type HubSource } from './hub.ts'

const occurredAt = '2026-06-23T12:00:00.000Z'
const received = (n: number): ReceivedEvent => ({
  receivedAt: occurredAt,
  event: {
    id: `e${n}`,
    siteId: n % 2 === 0 ? 'even' : 'odd',
    sessionId: 'x',
    occurredAt: occurredAt,
    type: 'a.b',
    outcome: 'success',
  },
})

/** An appliance in memory: positions are arrival numbers, and streams send the events of `arrive`. */
function appliance() {
  let last = 0
  let opened = 0
  const lines = new Set<ReadableStreamDefaultController<Uint8Array>>()
  const encoder = new TextEncoder()
  const source: HubSource = {
    async stream(signal) {
      opened += 1
      const from = last
      let line: ReadableStreamDefaultController<Uint8Array>
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          line = controller
          lines.add(controller)
          controller.enqueue(encoder.encode(`id: ${from}\nevent: ready\ndata: {}\n\n`))
        },
        cancel: () => void lines.delete(line),
      })
      signal.addEventListener('abort', () => lines.delete(line))
      await Bun.sleep(0)
      return new Response(body)
    },
    async missed({ where: filters = [] }, afterCursor, until) {
      await Bun.sleep(1)
      const from = Number(afterCursor)
      const to = Math.min(Number(until), from + 3) // small pages, so that a tab needs several
      const expected = filters[0]?.value
      const events = Array.from({ length: Math.max(0, to - from) }, (_, index) => received(from + index + 1))
      return Response.json({
        events: events.filter(({ event }) => expected === undefined || event.siteId === expected),
        position: `${Math.max(from, to)}`,
        more: from < Number(until) && to < Number(until),
        ahead: from > Number(until),
      })
    },
    lingerMs: 20,
  }
  const send = (text: string) => {
    for (const line of lines) line.enqueue(encoder.encode(text))
  }
  return {
    source,
    last: () => last,
    opened: () => opened,
    streams: () => lines.size,
    arrive() {
      last += 1
      send(`id: ${last}\nevent: events\ndata: ${JSON.stringify({ events: [received(last)] })}\n\n`)
    },
    cut() {
      for (const line of lines) line.close()
      lines.clear()
    },
  }
}

function tab(hub: ReturnType<typeof createHub>, afterPosition: number, siteId: string | null) {
  const stop = new AbortController()
  const seenIds: string[] = []
  const filter = {
    types: [],
    outcomes: [],
    where: siteId === null ? [] : [{ name: 'siteId', value: siteId }],
  }
  const open = (from: string, signal: AbortSignal) =>
    new Promise<Response>((resolve, reject) => {
      const encoder = new TextEncoder()
      let body: ReadableStreamDefaultController<Uint8Array>
      const stream = new ReadableStream<Uint8Array>({ start: (controller) => void (body = controller) })
      const close = hub.follow(filter, from, {
        begin: () => resolve(new Response(stream)),
        text: (text) => body.enqueue(encoder.encode(text)),
        end: () => body.close(),
        refuse: resolve,
        unreachable: () => reject(new TypeError('no answer')),
      })
      // Rejects like an aborted fetch.
      signal.addEventListener('abort', () => {
        close()
        body.error(new DOMException('given up', 'AbortError'))
        reject(new DOMException('given up', 'AbortError'))
      })
    })
  const followPromise = followLive({
    after: `${afterPosition}`,
    open,
    onEvents: (events) => seenIds.push(...events.map(({ event }) => event.id)),
    onState: () => {},
    onForgotten: () => {},
    signal: stop.signal,
    wait: () => Bun.sleep(1),
  })
  const expected = (last: number) =>
    Array.from({ length: last - afterPosition }, (_, index) => received(afterPosition + index + 1).event)
      .filter((event) => siteId === null || event.siteId === siteId)
      .map((event) => event.id)
  return { stop, seen: seenIds, done: followPromise, expected }
}

const step = fc.oneof(
  { weight: 6, arbitrary: fc.constant('arrive' as const) },
  { weight: 2, arbitrary: fc.constantFrom('join' as const, 'join even' as const) },
  { weight: 1, arbitrary: fc.constantFrom('cut' as const, 'leave' as const, 'pause' as const) },
)

test('each tab receives its events once and in order, over one stream', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.nat(5), async (steps, behind) => {
      const fakeAppliance = appliance()
      const hub = createHub(fakeAppliance.source)
      const tabs: ReturnType<typeof tab>[] = []
      for (const currentStep of [...steps, 'join' as const, 'arrive' as const]) {
        if (currentStep === 'arrive') fakeAppliance.arrive()
        else if (currentStep === 'cut') fakeAppliance.cut()
        else if (currentStep === 'pause') await Bun.sleep(3)
        else if (currentStep === 'leave') tabs.shift()?.stop.abort()
        else
          tabs.push(
            tab(hub, Math.max(0, fakeAppliance.last() - behind), currentStep === 'join' ? null : 'even'),
          )
        expect(fakeAppliance.streams()).toBeLessThanOrEqual(1)
      }
      const whole = () =>
        tabs.every(({ seen: seenIds, expected }) => seenIds.length >= expected(fakeAppliance.last()).length)
      for (let waited = 0; waited < 400 && !whole(); waited++) await Bun.sleep(2)
      for (const { seen: seenIds, expected } of tabs) expect(seenIds).toEqual(expected(fakeAppliance.last()))
      for (const { stop } of tabs) stop.abort()
      await Promise.all(tabs.map(({ done: followPromise }) => followPromise))
    }),
    { numRuns: 60 },
  )
}, 30_000)

test('a tab that reconnects at once finds the stream open; without tabs the stream closes', async () => {
  const fakeAppliance = appliance()
  const hub = createHub(fakeAppliance.source)
  for (let time = 0; time < 5; time++) {
    const visit = tab(hub, fakeAppliance.last(), null)
    fakeAppliance.arrive()
    while (visit.seen.length === 0) await Bun.sleep(1)
    visit.stop.abort()
    await visit.done
  }
  expect(fakeAppliance.opened()).toBe(1)
  await Bun.sleep(60)
  expect(fakeAppliance.streams()).toBe(0)
})

test('an error response of the appliance reaches the tab unchanged', async () => {
  const fakeAppliance = appliance()
  const hub = createHub({ ...fakeAppliance.source, missed: async () => new Response('no', { status: 400 }) })
  const refused = Promise.withResolvers<Response>()
  const noop = () => {}
  hub.follow({ types: [], outcomes: [] }, '0', {
    begin: noop,
    text: noop,
    end: noop,
    unreachable: noop,
    refuse: refused.resolve,
  })
  const answer = await refused.promise
  expect([answer.status, await answer.text()]).toEqual([400, 'no'])
})
