/** Assembles the store of the seam from its threads: verbs, group commit, look-ups from memory, closing. */
import { endsWriting, StoreError } from '../contract/errors.ts'
import type { EventStore, Store } from '../contract/store.ts'
import { appendQueue, type AppendQueue } from './threads/append-queue.ts'
import { identityStore, loadIdentity } from './identity/store.ts'
import { keptAnswers, type KeptAnswers } from './threads/answer-cache.ts'
import { retentionStore } from './retention/store.ts'
import { registryStore } from './registry/store.ts'
import { openReadThreads, openThreads, type Threads, type ThreadsOpening } from './threads/threads.ts'
import { webhookStore } from './webhooks/store.ts'

const watchEveryMs = 400

type Verbs = Pick<Threads, 'read' | 'write'>

/** The store, and its raw writing verbs for what the opening itself has to write. */
export async function openSqliteStore(opening: ThreadsOpening): Promise<Store & Pick<Verbs, 'write'>> {
  return storeOver(await openThreads(opening))
}

/** Answers reading verbs and refuses the others; the folder stays as it is, and need not be held. */
export async function openSqliteReader(folder: string, readDeadlineMs: number): Promise<Store> {
  return storeOver(await openReadThreads(folder, readDeadlineMs))
}

async function storeOver(threads: Threads): Promise<Store & Pick<Verbs, 'write'>> {
  const loaded = await loadIdentity(threads).catch(async (error: unknown) => {
    await threads.close()
    throw error
  })
  let closing: Promise<void> | null = null

  /** After `close` was called nothing new begins; what was asked before is finished. */
  function whileOpen<A extends unknown[], R>(call: (...args: A) => Promise<R>): (...args: A) => Promise<R> {
    return (...args) =>
      closing === null ? call(...args) : Promise.reject(new StoreError('closed', 'the store is closed'))
  }
  const broken = Promise.withResolvers<StoreError>()

  /** Writes only: a read that fails says nothing of what is acknowledged. */
  function noticing<A extends unknown[], R>(call: (...args: A) => Promise<R>): (...args: A) => Promise<R> {
    return (...args) => {
      const answer = call(...args)
      answer.catch((error: unknown) => {
        if (endsWriting(error)) broken.resolve(error)
      })
      return answer
    }
  }
  const endWatch = watchFiles(noticing(threads.requirePresent))
  const kept = keptAnswers()
  const write = whileOpen(noticing(tellingChanges(threads, kept)))
  const verbs = { read: whileOpen(threads.read), write } as Verbs

  const listeners = new Set<(orgIds: string[]) => void>()
  const queue = appendQueue(noticing(threads.append), (orgIds) => {
    // Before anybody hears of the commit: an acknowledged event is in every count that is asked for after it.
    for (const orgId of orgIds) kept.changed(orgId)
    listeners.forEach((listener) => listener(orgIds))
  })
  const identity = identityStore(verbs, loaded)

  async function close(): Promise<void> {
    endWatch()
    await queue.drained()
    await threads.close()
  }

  return {
    ...identity,
    ...restStore(verbs),
    write: verbs.write,
    events: eventStore(countingOnce(verbs, kept), { ...queue, append: whileOpen(queue.append) }, listeners),
    times: whileOpen(async () => ({ commit: await threads.commitTimes(), append: queue.times() })),
    webhooks: webhookStore(verbs),
    registry: registryStore(verbs),
    retention: retentionStore({
      ...verbs,
      truncateLog: whileOpen(threads.truncateLog),
      dropReserve: whileOpen(threads.dropReserve),
    }),
    ingestCounts: {
      add: (command) => verbs.write('ingestCounts.add', command),
      list: (query) => verbs.read('ingestCounts.list', query),
      nearMisses: (query) => verbs.read('ingestCounts.nearMisses', query),
    },
    keys: { ...identity.keys, findByHash: whileOpen(identity.keys.findByHash) },
    sites: { ...identity.sites, restricted: whileOpen(identity.sites.restricted) },
    secret: whileOpen(secrets(verbs)),
    broken: broken.promise,
    close: () => (closing ??= close()),
  }
}

/** Nobody may write for hours, and the files can be removed meanwhile. */
function watchFiles(requirePresent: () => Promise<void>): () => void {
  const timer = setInterval(() => void requirePresent().catch(() => undefined), watchEveryMs)
  timer.unref()
  return () => clearInterval(timer)
}

const takingVerbs = /^(events|orgs|retention)\./
const countingVerbs =
  /^events\.(overview|metrics|metricsText|breakdown|classVendor|agents|tally|histogram|trustReached|distinct|durations)$/

/** What takes events or whole organizations away changes counts, even where it failed half way. */
function tellingChanges({ write }: Verbs, kept: KeptAnswers): Verbs['write'] {
  return (verb, command) => {
    const answer = write(verb, command)
    return takingVerbs.test(verb) ? answer.finally(() => kept.changed(null)) : answer
  }
}

/** The same verbs; what counts is answered from what is kept while nothing has changed. */
function countingOnce(verbs: Verbs, kept: KeptAnswers): Verbs {
  const read = (verb: string, query: { orgId: string } | string) => {
    const ask = () => verbs.read(verb as never, query as never) as Promise<never>
    if (!countingVerbs.test(verb)) return ask()
    const orgId = typeof query === 'string' ? query : query.orgId
    return kept.of(orgId, `${verb} ${JSON.stringify(query)}`, ask)
  }
  return { ...verbs, read: read as Verbs['read'] }
}

function eventStore(
  { read, write }: Verbs,
  queue: AppendQueue,
  listeners: Set<(orgIds: string[]) => void>,
): EventStore {
  return {
    append: queue.append,
    pressure: queue.pressure,
    page: (query) => read('events.page', query),
    byId: (orgId, id) => read('events.byId', { orgId, id }),
    count: (query) => read('events.count', query),
    tail: (query) => read('events.tail', query),
    lastSeq: (orgId) => read('events.lastSeq', orgId),
    overview: (orgId) => read('events.overview', orgId),
    metrics: (query) => read('events.metrics', query),
    metricsText: (query) => read('events.metricsText', query),
    breakdown: (query) => read('events.breakdown', query),
    classVendor: (query) => read('events.classVendor', query),
    agents: (query) => read('events.agents', query),
    trustReached: (query) => read('events.trustReached', query),
    tally: (query) => read('events.tally', query),
    histogram: (query) => read('events.histogram', query),
    top: (query) => read('events.top', query),
    newValues: (query) => read('events.newValues', query),
    distinct: (query) => read('events.distinct', query),
    durations: (query) => read('events.durations', query),
    watch(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    removeSite: (command) => write('events.removeSite', command),
    erase: (command) => write('events.erase', command),
    expire: (command) => write('events.expire', command),
    async recount(query) {
      const repairs = await read('events.recount', query)
      if (repairs.length > 0) await write('events.repair', { orgId: query.orgId, repairs })
      return repairs.length
    },
  }
}

function restStore({
  read,
  write,
}: Verbs): Pick<Store, 'rejected' | 'sessions' | 'health' | 'sealedSecrets'> {
  return {
    rejected: {
      add: (samples) => write('rejected.add', samples),
      list: (orgId, limit) => read('rejected.list', { orgId, limit }),
    },
    sessions: {
      page: (query) => read('sessions.page', query),
      story: (query) => read('sessions.story', query),
    },
    health: () => read('health', null),
    sealedSecrets: () => read('sealedSecrets', null),
  }
}

/** A secret never changes, so it is asked for once. */
function secrets({ write }: Verbs): Store['secret'] {
  const asked = new Map<string, Promise<string>>()
  return (name) => {
    const known = asked.get(name)
    if (known !== undefined) return known
    const answer = write('secret', name)
    asked.set(name, answer)
    answer.catch(() => asked.delete(name)) // a later call may have more luck
    return answer
  }
}
