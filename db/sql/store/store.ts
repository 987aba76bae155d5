/** Assembles the store of the contract from its threads: verbs, group commit, caches, closing. */
import { writeWatch } from './write-watch.ts'
import { StoreError, endsWriting } from '../../contract/errors.ts'
import { cachedKeys, cachedSites } from './key-cache.ts'
import { answerCache, type AnswerCache } from './answer-cache.ts'
import { startPoll } from './change-poll.ts'
import { appendQueue } from '../threads/append-queue.ts'
import { type CallVerb, type Nouns, type Threads, remote } from './threads.ts'
import type { Following } from '../../contract/explore.ts'
import type { EventStore, Store } from '../../contract/store.ts'

const watchEveryMs = 400

/** `call` runs verbs that the contract does not have: those of the opening itself. */
export type SqlStore = Store & { call: CallVerb }

interface StoreOptions {
  /** Other stores write to the same database, so caches are checked against it. */
  isShared?: boolean
}

export async function storeOver(threads: Threads, options: StoreOptions = {}): Promise<SqlStore> {
  const { isShared = false } = options
  const { whileOpen, oneWhileOpen, closeOnce } = gate()
  const { broken, noticing } = failures()
  const writes = writeWatch(() => noticing(threads.write('checkWrites', null)))
  const answers = answerCache()
  const webhookWakes = wakes()
  const listeners = new Set<(orgIds: string[]) => void>()

  const call = whileOpen(async (verb: string, command?: unknown, following?: Following) => {
    if (!threads.writes(verb)) return cachedRead({ threads, answers, isShared }, verb, command, following)
    const written = writes.verb(noticing(threads.write(verb, command)))
    const answer = await (deletingVerbs.test(verb) ? written.finally(() => answers.changed(null)) : written)
    webhookWakes.announce(verb, command)
    return answer
  }) as CallVerb
  const { events, keys, sites, ...nouns } = await nounsOf(threads, call)
  const queue = appendQueue(
    (parcels) => writes.append(noticing(threads.append(parcels))),
    (orgIds) => {
      // Before the acknowledgement: an acknowledged event is in every count that is requested after it.
      for (const orgId of orgIds) answers.changed(orgId)
      listeners.forEach((listener) => listener(orgIds))
    },
    { othersAppend: threads.othersAppend, gathers: threads.gathers },
  )
  const poll = isShared ? await startPoll(call, { keys, sites }, listeners).catch(closeAfter(threads)) : null
  /** Without a poll the caches are always current. */
  const fresh = <A, R>(find: (argument: A) => R | Promise<R>): ((argument: A) => R | Promise<R>) =>
    poll === null
      ? oneWhileOpen(find)
      : oneWhileOpen(async (argument: A) => (await poll.fresh(), find(argument)))
  const endWatch = watchFiles(() => noticing(threads.requirePresent()))

  async function close(): Promise<void> {
    endWatch()
    poll?.end()
    await queue.drained()
    await threads.close()
  }

  return {
    call,
    ...nouns,
    keys: { ...keys, findByHash: fresh(keys.findByHash) },
    sites: { ...sites, restricted: fresh(sites.restricted) },
    events: {
      ...events,
      append: oneWhileOpen(queue.append),
      pressure: queue.pressure,
      watch(listener) {
        listeners.add(listener)
        return () => void listeners.delete(listener)
      },
    },
    webhooks: { ...nouns.webhooks, watch: webhookWakes.watch },
    retention: {
      ...nouns.retention,
      maintain: whileOpen(({ reason }) => threads.maintain(reason)),
    },
    health: () => call('health'),
    writeFailure: whileOpen(writes.failure),
    encryptedSecrets: () => call('encryptedSecrets'),
    times: whileOpen(async () => ({ commit: await threads.commitTimes(), append: queue.times() })),
    secret: whileOpen(secrets(call)),
    behind: () => (poll === null ? null : { viewMs: poll.viewMs(), upkeep: threads.upkeep?.() ?? null }),
    broken,
    close: () => closeOnce(close),
  }
}

/** After it was closed nothing new begins; calls before it are finished. */
function gate() {
  let closing: Promise<void> | null = null

  const refused = () => Promise.reject<never>(new StoreError('closed', 'the store is closed'))

  function whileOpen<A extends unknown[], R>(call: (...args: A) => Promise<R>): (...args: A) => Promise<R> {
    return (...args) => (closing === null ? call(...args) : refused())
  }

  return {
    whileOpen,
    /** The same for what requests of ingest call, without a list of arguments. */
    oneWhileOpen<A, R>(call: (argument: A) => R): (argument: A) => R | Promise<never> {
      return (argument) => (closing === null ? call(argument) : refused())
    },
    closeOnce: (close: () => Promise<void>) => (closing ??= close()),
  }
}

/** The first failure after which nothing is acknowledged. */
function failures() {
  const broken = Promise.withResolvers<StoreError>()
  return {
    broken: broken.promise,
    /** Writes only: a failed read says nothing about acknowledged data. */
    noticing<T>(answer: Promise<T>): Promise<T> {
      answer.catch((error: unknown) => {
        if (endsWriting(error)) broken.resolve(error)
      })
      return answer
    },
  }
}

/** The verbs as the contract groups them. Keys and restricted sites are loaded before anybody can change them. */
async function nounsOf(threads: Threads, call: CallVerb) {
  const noun = <N extends keyof Nouns>(name: N): Nouns[N] => remote(call, threads.verbs, name)
  const loading = Promise.all([call('keys.all'), call('sites.restricted')])
  const [allKeys, restricted] = await loading.catch(closeAfter(threads))
  const keys = cachedKeys(noun('keys'), allKeys)
  const orgs = noun('orgs')
  return {
    accounts: noun('accounts'),
    invitations: noun('invitations'),
    views: noun('views'),
    secondFactors: noun('secondFactors'),
    signIns: noun('signIns'),
    audit: noun('audit'),
    throttle: noun('throttle'),
    registry: noun('registry'),
    rejected: noun('rejected'),
    sessions: noun('sessions'),
    ingestCounts: noun('ingestCounts'),
    webhooks: noun('webhooks'),
    retention: noun('retention'),
    erasures: noun('erasures'),
    accessLogs: noun('accessLogs'),
    robots: noun('robots'),
    shareLinks: noun('shareLinks'),
    nodes: noun('nodes'),
    jobs: noun('jobs'),
    keyCheck: noun('keyCheck'),
    evidence: noun('evidence'),
    signatures: noun('signatures'),
    keys,
    sites: cachedSites(noun('sites'), restricted, () => call('sites.restricted')),
    events: eventVerbs(noun('events')),
    orgs: {
      ...orgs,
      async remove(command: Parameters<typeof orgs.remove>[0]) {
        await orgs.remove(command)
        keys.dropOrg(command.orgId)
      },
    },
  }
}

/** For a failure of the opening. */
function closeAfter(threads: Threads): (error: unknown) => Promise<never> {
  return async (error) => {
    await threads.close()
    throw error
  }
}

/** The files can be removed while nobody writes for hours. */
function watchFiles(requirePresent: () => Promise<void>): () => void {
  const timer = setInterval(() => void requirePresent().catch(() => undefined), watchEveryMs)
  timer.unref()
  return () => clearInterval(timer)
}

/** These change counts of the past, even where they fail half way. */
const deletingVerbs = /^(events|orgs|retention)\./
const countingVerbs =
  /^events\.(overview|metrics|metricsText|breakdown|classVendor|agents|filteredCounts|histogram|trustReached|distinct|durations)$/

interface Reading {
  threads: Threads
  answers: AnswerCache
  isShared: boolean
}

/** Counts are answered from the cache while nothing has changed. */
function cachedRead(
  { threads, answers, isShared }: Reading,
  verb: string,
  query: unknown,
  following?: Following,
): Promise<unknown> {
  const ask = () => threads.read(verb, query, following)
  if (!countingVerbs.test(verb)) return ask()
  const orgId = typeof query === 'string' ? query : (query as { orgId: string }).orgId
  const name = `${verb} ${JSON.stringify(query)}`
  if (!isShared) return answers.of(orgId, name, ask)
  // The version of the data is part of the name: another node may have changed the data since.
  return threads.read('eventVersion', orgId).then((version) => answers.of(orgId, `${version} ${name}`, ask))
}

function eventVerbs(events: Nouns['events']): Omit<EventStore, 'append' | 'pressure' | 'watch'> {
  return {
    ...events,
    async recount({ lease, ...query }) {
      const repairs = await events.recount(query)
      const { orgId } = query
      if (repairs.length > 0)
        await events.repair(lease === undefined ? { orgId, repairs } : { orgId, repairs, lease })
      return repairs.length
    },
  }
}

/** A secret never changes, so it is read once. */
function secrets(call: CallVerb): Store['secret'] {
  const cachedSecrets = new Map<string, Promise<string>>()
  return (name) => {
    const answer = cachedSecrets.get(name) ?? call('secret', name)
    if (cachedSecrets.has(name)) return answer
    cachedSecrets.set(name, answer)
    answer.catch(() => cachedSecrets.delete(name)) // a later call may succeed
    return answer
  }
}

/** Announces the webhook verbs after which deliveries are due or endpoints may advance, to whoever dispatches. */
type Listener = (orgId: string | null) => void

const due = () => [null]
const advances = ({ orgId }: { orgId: string }) => [null, orgId]

const wakingVerbs: { [verb: string]: (command: never) => (string | null)[] } = {
  'webhooks.schedule': due,
  'webhooks.replay': due,
  'webhooks.replayDead': due,
  'webhooks.advance': ({ delivery }: { delivery: unknown }) => (delivery === null ? [] : [null]),
  'webhooks.startProbes': due,
  'webhooks.openIncident': due,
  'webhooks.fireIncident': due,
  'webhooks.resolveIncident': due,
  'webhooks.changeEndpoint': advances,
  'webhooks.resumeEndpoint': advances,
  'webhooks.moveEndpoint': advances,
}

function wakes() {
  const listeners = new Set<Listener>()
  return {
    watch(listener: Listener): () => void {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    /** Called after the commit of a verb. */
    announce(verb: string, command: unknown): void {
      for (const orgId of wakingVerbs[verb]?.(command as never) ?? [])
        for (const listener of listeners) listener(orgId)
    },
  }
}
