/** `sightglass demo`: fills an organization with demo traffic, removes it, or keeps sending it live. */
import type { Json } from '../../../db/contract/store.ts'
import { isoTime, systemClock } from '../../clock.ts'
import type { Invocation } from '../config.ts'
import { type DemoEvent, demoSiteId } from '../../demo/event.ts'
import { demoTraffic } from '../../demo/traffic.ts'
import { limits } from '../../limits.ts'
import { UsageError } from '../../errors.ts'
import { dataPlace } from './data-verbs.ts'
import { demoLive } from './demo-live.ts'
import { openData, type DataAccess } from '../../runtime/store-access.ts'
import { print } from '../print.ts'

type Answer = { [member: string]: Json }

export async function demo(invocation: Invocation): Promise<number> {
  const { verb, values } = invocation
  refuseMixture(invocation)
  if (verb === 'demo' && values.live) return demoLive(invocation)
  const data = await openData({ ...dataPlace(values), create: verb === 'demo' })
  try {
    const answer = verb === 'demo' ? await fill(data, invocation) : await remove(data, values.org)
    print(values.json ? JSON.stringify(answer) : verb === 'demo' ? filledText(answer) : removedText(answer))
    return 0
  } finally {
    await data.close()
  }
}

/** Options of one kind of demo mean nothing to the other. */
function refuseMixture({ verb, values, settings }: Invocation): void {
  if (verb !== 'demo') return
  const wrong = values.live ? ['events'] : ['rate', 'url', 'key']
  const found = settings.find(({ name, source }) => source === 'flag' && wrong.includes(name))
  if (found) {
    throw new UsageError(
      values.live ? `--${found.name} does not go with --live` : `--${found.name} goes with --live only`,
      'sightglass help demo',
    )
  }
}

async function fill(data: DataAccess, { values: { org, seed, events } }: Invocation): Promise<Answer> {
  const nowMs = systemClock.now()
  const begun = (await data.call('demo begin', { org, seed, events })) as Answer
  const orgId = begun['orgId']!
  const sum = { sent: 0, accepted: 0, deduped: 0, since: '', until: '' }
  for (const batch of batches(seed, events, nowMs)) {
    const taken = (await data.call('demo append', {
      orgId,
      body: JSON.stringify({ events: batch }),
    })) as Answer
    sum.sent += batch.length
    sum.accepted += Number(taken['accepted'])
    sum.deduped += Number(taken['deduped'])
    sum.since ||= batch[0]!.occurredAt
    sum.until = batch.at(-1)!.occurredAt
    progress(`${count(sum.sent)} of about ${count(events)} events`)
  }
  progress(null)
  return {
    orgId,
    orgSlug: begun['orgSlug']!,
    siteId: demoSiteId,
    seed,
    ...sum,
    until: sum.until || isoTime(nowMs),
  }
}

/** Full batches across the days, so that small fillings are not thirty commits. */
function* batches(seed: number, events: number, nowMs: number): Generator<DemoEvent[]> {
  let waiting: DemoEvent[] = []
  for (const day of demoTraffic({ seed, events, nowMs })) {
    waiting = waiting.concat(day)
    while (waiting.length >= limits.eventsPerRequestMax) yield waiting.splice(0, limits.eventsPerRequestMax)
  }
  if (waiting.length > 0) yield waiting
}

async function remove(data: DataAccess, org: string): Promise<Answer> {
  return (await data.call('demo remove', { org })) as Answer
}

function filledText({ orgSlug, accepted, deduped, since, until }: Answer): string {
  const again = Number(deduped) > 0 ? ` ${count(Number(deduped))} were there already.` : ''
  const days = `${String(since).slice(0, 10)} to ${String(until).slice(0, 10)}`
  return (
    `Stored ${count(Number(accepted))} demo events of the site ${demoSiteId} in ${orgSlug}, ${days}.${again}\n` +
    'Take them away again with: sightglass demo remove'
  )
}

function removedText({ orgSlug, removed }: Answer): string {
  return Number(removed) === 0
    ? `There were no demo events in ${orgSlug}.`
    : `Removed ${count(Number(removed))} demo events of the site ${demoSiteId} from ${orgSlug}, ` +
        'with its tools and its memory.'
}

function count(value: number): string {
  return value.toLocaleString('en-US')
}

/** One line that rewrites itself, for a person only: logs and scripts get the result alone. */
function progress(text: string | null): void {
  if (!process.stderr.isTTY) return
  process.stderr.write(text === null ? '\r\u001b[K' : `\r\u001b[K${text}`)
}
