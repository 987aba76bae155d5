/** Assembles the store of the seam from its threads: verbs, group commit, look-ups from memory, closing. */
import { StoreError } from '../errors.ts'
import type { Store } from '../store.ts'
import { appendQueue } from './append-queue.ts'
import { keyStore } from './key-store.ts'
import { openThreads, type Threads, type ThreadsOpening } from './threads.ts'

export async function openSqliteStore(opening: ThreadsOpening): Promise<Store & Pick<Threads, 'write'>> {
  const threads = await openThreads(opening)
  let closing: Promise<void> | null = null

  /** After `close` was called nothing new begins; what was asked before is finished. */
  function whileOpen<A extends unknown[], R>(call: (...args: A) => Promise<R>): (...args: A) => Promise<R> {
    return (...args) =>
      closing === null ? call(...args) : Promise.reject(new StoreError('closed', 'the store is closed'))
  }
  const read = whileOpen(threads.read) as Threads['read']
  const write = whileOpen(threads.write) as Threads['write']

  const listeners = new Set<(orgIds: string[]) => void>()
  const queue = appendQueue(threads.append, (orgIds) => listeners.forEach((listener) => listener(orgIds)))
  const secrets = new Map<string, Promise<string>>()

  async function close(): Promise<void> {
    await queue.drained()
    await threads.close()
  }

  return {
    write,
    events: {
      append: whileOpen(queue.append),
      pressure: queue.pressure,
      page: (query) => read('events.page', query),
      byId: (orgId, id) => read('events.byId', { orgId, id }),
      tail: (query) => read('events.tail', query),
      lastSeq: (orgId) => read('events.lastSeq', orgId),
      overview: (orgId) => read('events.overview', orgId),
      watch(listener) {
        listeners.add(listener)
        return () => void listeners.delete(listener)
      },
      removeSite: (command) => write('events.removeSite', command),
    },
    orgs: {
      create: (command) => write('orgs.create', command),
      list: () => read('orgs.list', null as never),
      find: (idOrSlug) => read('orgs.find', idOrSlug),
    },
    accounts: {
      createFirstOwner: (command) => write('accounts.createFirstOwner', command),
      create: (command) => write('accounts.create', command),
      setPassword: (command) => write('accounts.setPassword', command),
      findByEmail: (email) => read('accounts.findByEmail', email),
      list: () => read('accounts.list', null as never),
      ownerExists: () => read('accounts.ownerExists', null as never),
      createLink: (link) => write('accounts.createLink', link),
      resetPassword: (command) => write('accounts.resetPassword', command),
    },
    signIns: {
      create: (command) => write('signIns.create', command),
      find: (tokenHash) => read('signIns.find', tokenHash),
      touch: (tokenHash, now) => write('signIns.touch', { tokenHash, now }),
      end: (command) => write('signIns.end', command),
      prune: (now, idleMs) => write('signIns.prune', { now, idleMs }),
    },
    keys: keyStore({ ...threads, read, write }, await threads.read('keys.all', null as never)),
    audit: {
      append: (entry) => write('audit.append', entry),
      list: (query) => read('audit.list', query),
    },
    rejected: {
      add: (samples) => write('rejected.add', samples),
      list: (orgId, limit) => read('rejected.list', { orgId, limit }),
    },
    secret: whileOpen((name: string) => {
      const known = secrets.get(name) ?? threads.write('secret', name)
      secrets.set(name, known)
      return known
    }),
    health: () => read('health', null as never),
    close: () => (closing ??= close()),
  }
}
