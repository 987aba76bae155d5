/** Polls a database that several nodes write to, so that the caches of this store follow the changes of the others. */
import type { CachedGroup, Changes } from '../nodes/nodes.ts'
import type { CallVerb } from './threads.ts'

/** Three polls fit into the second within which a revoked key must be rejected everywhere. */
const pollEveryMs = 300
const staleMsMax = 900

interface ChangePoll {
  /** Resolves when the caches are at most `staleMsMax` old. Rejects when the database does not answer. */
  fresh(): Promise<void> | undefined
  /** Since the last complete poll began. */
  viewMs(): number
  end(): void
}

type Caches = { [group in CachedGroup]: { reload(): Promise<void> } }

const groups = ['keys', 'sites'] as const

/**
 * Resolves after the first poll. Listeners hear of every event: those of this store with their commit, those of other
 * nodes with the next poll. A poll may repeat what a commit announced.
 */
export async function startPoll(
  call: CallVerb,
  caches: Caches,
  listeners: ReadonlySet<(orgIds: string[]) => void>,
): Promise<ChangePoll> {
  let lastChanges: Changes | null = null
  let freshAtMs = -Infinity // when the last complete poll began
  let running: Promise<void> | null = null

  async function poll(): Promise<void> {
    const startedMs = performance.now()
    const changes = await call('changes')
    for (const group of groups)
      if (lastChanges?.versions[group] !== changes.versions[group]) await caches[group].reload()
    const orgIds = lastChanges === null ? [] : arrivedSince(lastChanges, changes)
    lastChanges = changes
    freshAtMs = startedMs
    if (orgIds.length > 0) listeners.forEach((listener) => listener(orgIds))
  }

  function pollOnce(): Promise<void> {
    running ??= poll().finally(() => (running = null))
    return running
  }

  const isStale = () => performance.now() - freshAtMs > staleMsMax
  async function refresh(): Promise<void> {
    while (isStale()) await pollOnce() // a poll that began too long ago is followed by another
  }

  await pollOnce()
  // A database that does not answer is reported by the calls that need it.
  const timer = setInterval(() => void pollOnce().catch(() => undefined), pollEveryMs)
  timer.unref()
  return {
    fresh: () => (isStale() ? refresh() : undefined),
    viewMs: () => performance.now() - freshAtMs,
    end: () => clearInterval(timer),
  }
}

/** The organizations that got events. */
function arrivedSince(lastChanges: Changes, { arrivals }: Changes): string[] {
  return Object.keys(arrivals).filter((orgId) => arrivals[orgId] !== (lastChanges.arrivals[orgId] ?? 0))
}
