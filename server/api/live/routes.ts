/** GET /api/live: streams new events to the Logs page over server-sent events, resumable by Last-Event-ID. */
import { Elysia } from 'elysia'
import { AppError, retryAfter } from '../../errors.ts'
import { jsonText } from '../../http/response.ts'
import { watchPermit } from '../../http/permit.ts'
import { contextOf, invalidQuery, ownerOf, readQuery } from '../../http/request.ts'
import { limits } from '../../limits.ts'
import { filterParameters, readFilter } from '../traces/filter.ts'
import { livePosition, livePurpose } from '../traces/live-position.ts'
import { wrapEvents } from '../traces/record.ts'
import type { EventFilter, EventStore, Store, StoredEvent } from '../../../db/contract/store.ts'
import type { Owner, Share, Shares } from '../../http/shares.ts'
import type { Cipher } from '../../system/encryption.ts'
import type { SignIns } from '../../identity/sign-in/sign-ins.ts'

interface LiveRoutesServices {
  store: Store
  signIns: SignIns
  cursorCipher: Cipher
  streams: Set<AbortController>
  streamShares: Shares
}

const heartbeatMs = 10_000
const lifeMs = 30 * 60_000

export function liveRoutes(services: LiveRoutesServices) {
  const { store, cursorCipher, signIns, streams } = services
  return new Elysia()
    .get('/api/live/missed', ({ request }) => missed(services, request))
    .get('/api/live', async ({ request }) => {
      const view = await signIns.require(request)
      const query = readQuery(request, { after: 'one', ...streamFilters })
      const orgId = view.org.id
      const filter = readFilter(query)
      // A browser that reconnects sends the last id it received, which is newer than `after` in its URL.
      const from = request.headers.get('last-event-id') || query.one('after')
      const opened = from ? (cursorCipher.decrypt(livePurpose, from) as [string, number] | null) : null
      if (from && opened?.[0] !== orgId) throw invalidQuery('after', 'Invalid stream position.')
      const afterSeq = opened ? opened[1] : await store.events.lastSeq(orgId)
      if (request.method === 'HEAD') return new Response(null, { headers: streamHeaders })
      const share = acquireStream(services, ownerOf(contextOf(request)))
      const ended = new AbortController()
      const signal = AbortSignal.any([request.signal, ended.signal])
      streams.add(ended)
      // Not only in the generator: a client that disconnects before it reads never starts it.
      const endWatch = watchPermit(contextOf(request).permit!, () => ended.abort())
      const endStream = () => {
        endWatch()
        streams.delete(ended)
        share.release()
      }
      signal.addEventListener('abort', endStream)
      contextOf(request).keepOpen()
      const items = liveEvents({ events: store.events, orgId, filter, afterSeq, signal, heartbeatMs, lifeMs })
      const message = (name: string, seq: number, data: string) =>
        `id: ${livePosition(cursorCipher, orgId, seq)}\nevent: ${name}\ndata: ${data}\n\n`
      async function* text() {
        try {
          yield `retry: 1000\n${message('ready', afterSeq, '{}')}`
          for await (const item of items) {
            yield item.kind === 'quiet'
              ? ': quiet\n\n'
              : message('events', item.lastSeq, eventsJson(item.events))
          }
        } finally {
          endStream()
        }
      }
      return new Response(text() as unknown as ReadableStream, { headers: streamHeaders })
    })
}

function acquireStream({ streamShares }: LiveRoutesServices, owner: Owner): Share {
  const share = streamShares.acquire(owner, 1)
  if (share !== null) return share
  const message = 'You have reached your limit of open live streams. Close one or try again later.'
  throw new AppError('overloaded', message, { headers: retryAfter() })
}

const missedMax = 1_000

/** The events a tab missed before it joined a stream that is at `to`, in arrival order, and the position after them. */
async function missed(
  { store, cursorCipher, signIns }: LiveRoutesServices,
  request: Request,
): Promise<Response> {
  const view = await signIns.require(request)
  const query = readQuery(request, { after: 'one', to: 'one', ...streamFilters })
  const orgId = view.org.id
  const filter = readFilter(query)
  const seqOf = (name: string): number => {
    const opened = cursorCipher.decrypt(livePurpose, query.one(name) ?? '') as [string, number] | null
    if (opened?.[0] !== orgId) throw invalidQuery(name, 'Invalid stream position.')
    return opened[1]
  }
  const afterSeq = seqOf('after')
  const toSeq = seqOf('to')
  const emptyTail = { events: [], lastSeq: afterSeq }
  const tail =
    afterSeq < toSeq
      ? await store.events.tail({
          orgId,
          filter,
          afterSeq,
          limit: missedMax,
          bytesMax: limits.pageBytesMax,
          provenance: true,
        })
      : emptyTail
  const hasMore = tail.lastSeq < toSeq
  const ahead = afterSeq > toSeq
  // The stream itself delivers events after `to`.
  const events = tail.events.filter(({ seq }) => seq <= toSeq)
  const position = livePosition(cursorCipher, orgId, hasMore ? tail.lastSeq : Math.max(toSeq, afterSeq))
  const positionJson = JSON.stringify({ position, more: hasMore && !ahead, ahead })
  return jsonText(`${eventsJson(events).slice(0, -1)},${positionJson.slice(1)}`)
}

/** Streams are read in arrival order, which does not support text search. */
const { q: _, ...streamFilters } = filterParameters

const streamHeaders = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
}

/** `{"events":[{"receivedAt":…,"event":…,"record":…}]}` with each event's stored text unchanged. */
function eventsJson(events: StoredEvent[]): string {
  return `{"events":[${wrapEvents(events)}]}`
}

/** Yields one organization's events in arrival order, woken by commits, as fast as the client reads. */
interface LiveOptions {
  events: Pick<EventStore, 'tail' | 'watch'>
  orgId: string
  filter: EventFilter
  afterSeq: number
  signal: AbortSignal
  heartbeatMs: number
  lifeMs: number // then the stream ends and the client resumes
}

export type LiveItem =
  { kind: 'events'; events: StoredEvent[]; lastSeq: number } | { kind: 'quiet'; lastSeq: number }

const pageMax = 200
const bytesMax = limits.liveBytesMax

/**
 * Yields every matching event after `afterSeq` exactly once, in arrival order, and `quiet` when nothing arrived for a
 * heartbeat. A generator, so a client that does not read uses no memory: the next page is read on demand.
 */
export async function* liveEvents(options: LiveOptions): AsyncGenerator<LiveItem> {
  const { events, orgId, filter, signal } = options
  const wakeUp = makeWakeUp(signal)
  const unwatch = events.watch((orgIds) => {
    if (orgIds.includes(orgId)) wakeUp.fire()
  })
  const endAt = performance.now() + options.lifeMs
  let lastSeq = options.afterSeq
  try {
    while (!signal.aborted && performance.now() < endAt) {
      wakeUp.reset()
      const page = await events.tail({
        orgId,
        filter,
        afterSeq: lastSeq,
        limit: pageMax,
        bytesMax,
        provenance: true,
      })
      if (signal.aborted) return
      const moved = page.lastSeq > lastSeq
      lastSeq = Math.max(lastSeq, page.lastSeq)
      if (page.events.length > 0) yield { kind: 'events', events: page.events, lastSeq }
      else if (!moved && !(await wakeUp.wait(options.heartbeatMs))) yield { kind: 'quiet', lastSeq }
    }
  } finally {
    unwatch()
    wakeUp.stop()
  }
}

/** A signal that can fire before it is awaited, so that a commit during a read is not missed. */
function makeWakeUp(signal: AbortSignal) {
  let fired = false
  let wake: (() => void) | null = null
  const fire = () => {
    fired = true
    wake?.()
  }
  signal.addEventListener('abort', fire)
  return {
    fire,
    reset: () => void (fired = false),
    stop: () => signal.removeEventListener('abort', fire),
    /** Waits for the signal; false on timeout. */
    wait(timeoutMs: number): Promise<boolean> {
      if (fired) return Promise.resolve(true)
      return new Promise((resolve) => {
        const timer = setTimeout(() => finish(false), timeoutMs)
        const finish = (answer: boolean) => {
          clearTimeout(timer)
          wake = null
          resolve(answer)
        }
        wake = () => finish(true)
      })
    },
  }
}
