/** The report since the last visit: known to the account, so that all devices continue it, and to this browser. */
import { effect, signal, type Signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { ApiError, api } from '../../api/api.ts'
import { now } from '../../app/clock.ts'
import { readPreference, writePreference } from '../../app/preferences.ts'
import { session } from '../../app/session.ts'
import { prefetchQuery, readCache, writeCache } from '../../query/query.ts'
import { lookAgain, newerLook, parseLook, seeAll, type Look } from './model.ts'

const visitQuery = { key: 'overview-visit', fetch: (stop: AbortSignal) => api.overviewVisit(stop) }

export const prefetchVisit = () => prefetchQuery(visitQuery)

/** Members who share a browser have visits of their own. */
const localName = (): string => `overview.${session.peek()?.account.id ?? ''}`

/** Null until the account's last visit is known. Without an answer this browser's counts. */
export function useLook(): Signal<Look | null> {
  const look = useMemo(() => signal<Look | null>(beginKnown()), [])
  useEffect(() => {
    const stop = new AbortController()
    if (look.peek() === null) void begin(look, stop.signal)
    const end = effect(() => void (look.value !== null && note(look, look.value, stop.signal)))
    return () => {
      stop.abort()
      end()
    }
  }, [])
  return look
}

/** The visit of this page load, which the cache has. */
function beginKnown(): Look | null {
  const cachedVisit = readCache<{ visit: Look | null }>(visitQuery.key)
  return cachedVisit === null ? null : beginFrom(cachedVisit.visit)
}

const beginFrom = (visit: Look | null): Look =>
  lookAgain(newerLook(visit, parseLook(readPreference(localName()))), now())

async function begin(look: Signal<Look | null>, stop: AbortSignal): Promise<void> {
  const visit = await api.overviewVisit(stop).then(
    (answer) => answer.visit,
    () => null,
  )
  if (!stop.aborted) look.value = beginFrom(visit)
}

/** What another device has reported meanwhile comes back. */
async function note(look: Signal<Look | null>, ownLook: Look, stop: AbortSignal): Promise<void> {
  writePreference(localName(), JSON.stringify(ownLook))
  const cachedVisit = readCache<{ visit: Look | null }>(visitQuery.key)
  if (JSON.stringify(cachedVisit?.visit) === JSON.stringify(ownLook)) return
  writeCache(visitQuery.key, { visit: ownLook })
  const visit = await store(ownLook)
  if (stop.aborted || look.peek() !== ownLook) return
  writeCache(visitQuery.key, { visit })
  look.value = visit
}

/** What the account knows then. Without the server, this browser has it. */
async function store(ownLook: Look): Promise<Look> {
  try {
    return (await api.noteOverviewVisit(ownLook)).visit
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return ownLook
  }
}

/** Changes what is shown when the account knows, so that a page that is loaded then does not bring it back. */
export async function markSeen(look: Signal<Look>): Promise<void> {
  const seenLook = seeAll(look.peek(), now())
  writePreference(localName(), JSON.stringify(seenLook))
  const visit = await store(seenLook)
  writeCache(visitQuery.key, { visit })
  look.value = visit
}
