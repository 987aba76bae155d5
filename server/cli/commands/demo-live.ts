/** `sightglass demo --live`: sends demo events at a steady rate until Ctrl-C, with its own key when none is given. */
import type { Json } from '../../../db/contract/store.ts'
import { systemClock } from '../../clock.ts'
import type { Invocation } from '../config.ts'
import { demoSiteId } from '../../demo/event.ts'
import { liveEvents } from '../../demo/traffic.ts'
import { postEvents, type PostTarget } from '../../demo/post.ts'
import { AppError } from '../../errors.ts'
import { limits } from '../../limits.ts'
import type { OptionValues } from '../options.ts'
import { dataPlace } from './data-verbs.ts'
import { openData, type DataAccess } from '../../runtime/store-access.ts'
import { print } from '../print.ts'

type Answer = { [member: string]: Json }

export async function demoLive({ values }: Invocation): Promise<number> {
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop.abort())
  const data = values.url === null || values.key === null ? await serverOf(values) : null
  try {
    const ingestUrl = values.url ?? (await addressOf(data!))
    const minted = values.key === null ? await mint(data!, values.org) : null
    try {
      const target = { ingestUrl, key: values.key ?? minted!.key }
      if (!values.json) print(`Sending demo events to ${ingestUrl} until Ctrl-C.`)
      const sum = await send(target, values, stop.signal)
      print(
        values.json
          ? JSON.stringify(sum)
          : `\nSent ${sum.sent} events: ${sum.accepted} stored, ${sum.retries} tries repeated.`,
      )
      return 0
    } finally {
      // The key dies with its use: nothing that can write stays behind.
      if (minted) await data!.call('key revoke', { id: minted.id })
    }
  } finally {
    await data?.close()
  }
}

async function serverOf(values: OptionValues): Promise<DataAccess> {
  const data = await openData({ ...dataPlace(values), create: false })
  if (data.byServer) return data
  await data.close()
  throw new AppError('not_found', `No server runs on ${values['data-dir']}.`, {
    hint: 'start it, name its folder with --data-dir, or give both --url and --key',
  })
}

async function addressOf(data: DataAccess): Promise<string> {
  const { ingestUrl } = (await data.call('server address', {})) as Answer
  if (typeof ingestUrl === 'string') return ingestUrl
  throw new AppError('conflict', 'The server listens on a socket, which only its proxy reaches.', {
    hint: 'say with --url where the proxy answers',
  })
}

async function mint(data: DataAccess, org: string): Promise<{ id: string; key: string }> {
  const made = (await data.call('key create', {
    kind: 'ingest',
    label: 'demo --live',
    org,
    site: [demoSiteId],
  })) as Answer
  return { id: String(made['id']), key: String(made['key']) }
}

/** One event a request, as most backends do; above 50 a second several, so that the rate can be held. */
async function send(target: PostTarget, { rate, seed }: OptionValues, signal: AbortSignal) {
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
    // Behind schedule it goes on at once, but a long stop is not made up for with a flood.
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
