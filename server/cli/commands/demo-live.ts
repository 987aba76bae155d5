/** `sightglass demo --live`: sends demo events at a steady rate until Ctrl-C, by default with a temporary key. */
import { systemClock } from '../../clock.ts'
import { demoSiteId } from '../../demo/event.ts'
import { liveEvents } from '../../demo/traffic.ts'
import { postEvents, type PostTarget } from '../../demo/post.ts'
import { AppError } from '../../errors.ts'
import { limits } from '../../limits.ts'
import type { StoreAccess } from '../../runtime/store-access.ts'
import type { Invocation } from '../command.ts'
import { withData } from '../data-command.ts'
import { print, printAnswer, type Answer } from '../print.ts'

interface LiveOptions {
  org: string
  url: string | null
  key: string | null
  rate: number
  seed: number
  json: boolean
  'data-dir': string
}

export async function demoLive(
  invocation: Pick<Invocation, 'values' | 'commands'>,
  values: LiveOptions,
): Promise<number> {
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop.abort())
  const { url, key } = values
  if (url !== null && key !== null) return sendTo({ ingestUrl: url, key }, values, stop.signal)
  return withData(invocation, 'write', async (data) => {
    if (!data.byServer)
      throw new AppError('not_found', `No server runs on ${values['data-dir']}.`, {
        hint: 'start it, choose its folder with --data-dir, or give --url and --key',
      })
    const ingestUrl = url ?? (await addressOf(data))
    if (key !== null) return sendTo({ ingestUrl, key }, values, stop.signal)
    const minted = await mint(data, values.org)
    try {
      return await sendTo({ ingestUrl, key: minted.key }, values, stop.signal)
    } finally {
      await data.call('key revoke', { id: minted.id })
    }
  })
}

async function sendTo(target: PostTarget, values: LiveOptions, signal: AbortSignal): Promise<number> {
  if (!values.json) print(`Sending demo events to ${target.ingestUrl} until Ctrl-C.`)
  const sums = await send(target, values, signal)
  printAnswer(
    values,
    sums,
    ({ sent, accepted, retries }) => `\nSent ${sent} events: ${accepted} stored, ${retries} retries.`,
  )
  return 0
}

async function addressOf(data: StoreAccess): Promise<string> {
  const { ingestUrl } = (await data.call('server address', {})) as Answer
  if (typeof ingestUrl === 'string') return ingestUrl
  throw new AppError('conflict', 'The server listens on a Unix socket.', {
    hint: 'give the address of its proxy with --url',
  })
}

async function mint(data: StoreAccess, org: string): Promise<{ id: string; key: string }> {
  const params = { kind: 'ingest', label: 'demo --live', org, site: [demoSiteId] }
  const made = (await data.call('key create', params)) as Answer
  return { id: String(made['id']), key: String(made['key']) }
}

/** One event per request, as most backends send them; several above 50 per second, to hold the rate. */
async function send(target: PostTarget, { rate, seed }: LiveOptions, signal: AbortSignal) {
  const next = liveEvents(seed, systemClock.now())
  const perPost = Math.min(limits.eventsPerRequestMax, Math.ceil(rate / 50))
  const everyMs = (perPost / rate) * 1_000
  const sum = { sent: 0, accepted: 0, deduped: 0, retries: 0 }
  let dueMs = performance.now()
  while (!signal.aborted) {
    const events = Array.from({ length: perPost }, () => next(systemClock.now()))
    let outcome = await postEvents(target, events)
    while (outcome.kind === 'retry' && !signal.aborted) {
      sum.retries++
      print(`sightglass: ${outcome.why}; retrying in ${outcome.afterMs / 1_000} s`, 2)
      await pause(outcome.afterMs, signal)
      if (!signal.aborted) outcome = await postEvents(target, events)
    }
    if (outcome.kind === 'rejected')
      throw new AppError('forbidden', `The server rejected the events: ${outcome.message}`)
    if (outcome.kind === 'stored') {
      sum.sent += events.length
      sum.accepted += outcome.accepted
      sum.deduped += outcome.deduped
    }
    // At most one second of delay is made up for, so that a long stop does not end in a flood.
    dueMs = Math.max(dueMs + everyMs, performance.now() - 1_000)
    await pause(dueMs - performance.now(), signal)
  }
  return sum
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (ms <= 0 || signal.aborted) return Promise.resolve()
  return new Promise((done) => {
    const timer = setTimeout(finish, ms)
    signal.addEventListener('abort', finish, { once: true })
    function finish() {
      clearTimeout(timer)
      signal.removeEventListener('abort', finish)
      done()
    }
  })
}
