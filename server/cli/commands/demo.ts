/** `sightglass demo`: stores demo traffic in an organization, deletes it, or sends it live. */
import { auditEntry } from '../../audit/entry.ts'
import { isoTime, systemClock } from '../../clock.ts'
import { demoSiteId, type DemoEvent } from '../../demo/event.ts'
import { vouchFor } from '../../evidence/judged-record.ts'
import { AppError, UsageError } from '../../errors.ts'
import { acceptEvents } from '../../ingest/accept.ts'
import { demoKeyId } from '../../ids.ts'
import { limits } from '../../limits.ts'
import { numberOf, textOf, type Params, type WorkContext } from '../../runtime/work.ts'
import { command, type Invocation, type Noun } from '../command.ts'
import { dataCommand, requireOrg, withData } from '../data-command.ts'
import { applianceAddress, ratePerSecond, text, toggle, wholeNumber } from '../option.ts'
import { linkOptions, orgOption } from '../options.ts'
import { print, printAnswer, type Answer } from '../print.ts'
import { postEvents, type PostTarget } from '../../demo/post.ts'
import type { AuditEntry, Json } from '../../../db/contract/store.ts'
import type { StoreAccess } from '../../runtime/store-access.ts'

const demoOptions = {
  ...orgOption,
  events: {
    read: wholeNumber(100, 5_000_000),
    value: 'COUNT',
    default: '60000',
    help: 'approximate number of events in the 30 days',
  },
  seed: {
    read: wholeNumber(0, 2 ** 31 - 1),
    value: 'NUMBER',
    default: '1',
    help: 'seed of the traffic; the same seed makes the same traffic',
  },
  live: toggle('send to the ingest endpoint until Ctrl-C'),
  rate: { read: ratePerSecond, value: 'N/s|m|h', default: '5/s', help: 'rate of --live' },
  url: {
    read: applianceAddress,
    value: 'URL',
    default: null,
    help: 'server that --live sends to, by default the one of the data folder',
  },
  key: { ...text('KEY', 'ingest key of --live, by default a temporary one'), secret: true },
  listen: linkOptions.listen,
} as const

export const demo: Noun = {
  group: 'Data',
  commands: [
    command({
      name: 'demo',
      summary: 'fill an organization with 30 days of demo traffic, or send it live',
      usage:
        '[--events COUNT] [--seed NUMBER] [--org SLUG|ID] | ' +
        'demo --live [--rate N/s|m|h] [--url URL] [--key KEY]',
      about: [
        'All demo data is marked: the site is demo-shop, events have metadata.demo = true, tools and site memory have demo = true. "demo remove" deletes it. --live posts to the public ingest endpoint, as a backend would.',
      ],
      examples: ['sightglass demo', 'sightglass demo --live --rate 20/s', 'sightglass demo remove'],
      options: demoOptions,
      work: { begin: beginDemo, append: appendDemo },
      async run(invocation) {
        refuseMixture(invocation)
        const { values } = invocation
        if (values.live) return demoLive(invocation, values)
        const answer = await withData(invocation, 'create', (data) => fill(data, invocation))
        printAnswer(values, answer, filledText)
        return 0
      },
    }),
    dataCommand({
      name: 'demo remove',
      summary: 'delete all demo traffic of an organization',
      about: ['Deletes the events, tools and memory of the site demo-shop, and nothing else.'],
      examples: ['sightglass demo remove'],
      options: orgOption,
      access: 'write',
      params: ({ values: { org } }) => ({ org }),
      async work(context, params) {
        const { store } = context
        const org = await requireOrg(store, textOf(params, 'org'))
        const audit = entry(context, org.id, 'demo.removed', { siteId: demoSiteId })
        const removed = await store.events.removeSite({ orgId: org.id, siteId: demoSiteId, audit })
        return { orgId: org.id, orgSlug: org.slug, siteId: demoSiteId, removed }
      },
      print: ({ orgSlug, removed }) =>
        Number(removed) === 0
          ? `No demo events in ${orgSlug}.`
          : `Deleted ${count(Number(removed))} demo events from ${orgSlug}.`,
    }),
  ],
}

/** Options of --live have no effect without it, and the other way round. */
function refuseMixture({ values, settings }: Invocation<typeof demoOptions>): void {
  const wrong = values.live ? ['events'] : ['rate', 'url', 'key']
  const misusedFlag = settings.find(({ name, source }) => source === 'flag' && wrong.includes(name))
  if (misusedFlag === undefined) return
  const problem = values.live
    ? `--${misusedFlag.name} cannot be used with --live`
    : `--${misusedFlag.name} needs --live`
  throw new UsageError(problem, 'sightglass help demo')
}

async function fill(
  data: StoreAccess,
  { values: { org, seed, events } }: Invocation<typeof demoOptions>,
): Promise<Answer> {
  const nowMs = systemClock.now()
  const beginAnswer = (await data.call('demo begin', { org, seed, events })) as Answer
  const orgId = beginAnswer['orgId']!
  const sums = { sent: 0, accepted: 0, deduped: 0, since: '', until: '' }
  for await (const batch of batches(seed, events, nowMs)) {
    const params = { orgId, body: JSON.stringify({ events: batch }) }
    const result = (await data.call('demo append', params)) as Answer
    sums.sent += batch.length
    sums.accepted += Number(result['accepted'])
    sums.deduped += Number(result['deduped'])
    sums.since ||= batch[0]!.occurredAt
    sums.until = batch.at(-1)!.occurredAt
    progress(`${count(sums.sent)} of about ${count(events)} events`)
  }
  progress(null)
  const until = sums.until || isoTime(nowMs)
  return { orgId, orgSlug: beginAnswer['orgSlug']!, siteId: demoSiteId, seed, ...sums, until }
}

/** Full batches across days, so that a small demo is not thirty commits. */
async function* batches(seed: number, events: number, nowMs: number): AsyncGenerator<DemoEvent[]> {
  const { demoTraffic } = await import('../../demo/traffic.ts')
  let pending: DemoEvent[] = []
  for (const day of demoTraffic({ seed, events, nowMs })) {
    pending = pending.concat(day)
    while (pending.length >= limits.eventsPerRequestMax) yield pending.splice(0, limits.eventsPerRequestMax)
  }
  if (pending.length > 0) yield pending
}

function filledText({ orgSlug, accepted, deduped, since, until }: Answer): string {
  const duplicateText = Number(deduped) > 0 ? ` ${count(Number(deduped))} already existed.` : ''
  const days = `${String(since).slice(0, 10)} to ${String(until).slice(0, 10)}`
  return [
    `Stored ${count(Number(accepted))} demo events of the site ${demoSiteId} in ${orgSlug}, ${days}.${duplicateText}`,
    'To delete them: sightglass demo remove',
  ].join('\n')
}
function count(value: number): string {
  return value.toLocaleString('en-US')
}

/** Progress for a terminal only; logs and scripts get the result alone. */
function progress(text: string | null): void {
  if (!process.stderr.isTTY) return
  process.stderr.write(text === null ? '\r\u001b[K' : `\r\u001b[K${text}`)
}

/** One audit entry for the whole fill, before its first batch. */
async function beginDemo(context: WorkContext, params: Params): Promise<Json> {
  const { store } = context
  const org = await requireOrg(store, textOf(params, 'org'))
  const metadata = { siteId: demoSiteId, seed: numberOf(params, 'seed'), events: numberOf(params, 'events') }
  await store.audit.append(entry(context, org.id, 'demo.filled', metadata))
  // Loaded here, so that a server without demo data does not hold the demo's tools in memory.
  const { pushDemo } = await import('../../demo/push.ts')
  await pushDemo(store, org.id, context.clock.now())
  return { orgId: org.id, orgSlug: org.slug }
}

/** `body` is a body of POST /v1/sdk/events; it passes the same checks. */
async function appendDemo({ store, clock }: WorkContext, params: Params): Promise<Json> {
  const { records, rejected } = acceptEvents(textOf(params, 'body'), 'application/json', [demoSiteId])
  const first = rejected[0]?.issues[0]
  if (first) throw new Error(`a demo event breaks the contract: ${first.path} ${first.message}`)
  records.forEach(vouchFor)
  const result = await store.events.append({
    orgId: textOf(params, 'orgId'),
    keyId: demoKeyId,
    door: 'demo',
    receivedAtMs: clock.now(),
    events: records,
  })
  return { accepted: result.accepted, deduped: result.deduped, rejected: result.rejected.length }
}

function entry(
  { clock }: WorkContext,
  orgId: string,
  action: string,
  metadata: AuditEntry['metadata'],
): AuditEntry {
  return auditEntry({ orgId, actor: 'cli' }, { action, target: demoSiteId, metadata }, clock.now())
}

interface LiveOptions {
  org: string
  url: string | null
  key: string | null
  rate: number
  seed: number
  json: boolean
  'data-dir': string
}

/** Sends demo events at a steady rate until Ctrl-C, by default with a temporary key. */
async function demoLive(
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
    ({ sent: sentCount, accepted, retries }) =>
      `\nSent ${sentCount} events: ${accepted} stored, ${retries} retries.`,
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
  const newKey = (await data.call('key create', params)) as Answer
  return { id: String(newKey['id']), key: String(newKey['key']) }
}

/** One event per request, as most backends send them; several above 50 per second, to hold the rate. */
async function send(target: PostTarget, { rate, seed }: LiveOptions, signal: AbortSignal) {
  const { liveEvents } = await import('../../demo/traffic.ts')
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
  return new Promise((resolve) => {
    const timer = setTimeout(finish, ms)
    signal.addEventListener('abort', finish, { once: true })
    function finish() {
      clearTimeout(timer)
      signal.removeEventListener('abort', finish)
      resolve()
    }
  })
}
