/** Who is signed in, what the organization contains, and signing in and out. */
import { effect, signal } from '@preact/signals'
import { ApiError, api, changingCookie, type Overview, type Session, type Totals } from '../api/api.ts'
import { setLiveReader } from '../live/shared.ts'
import { navigate, place, safeReturn } from './router.ts'

export type Entry = 'asking' | 'signed-out' | 'signed-in' | 'failed'

export const entry = signal<Entry>('asking')
export const session = signal<Session | null>(null)
export const entryError = signal<ApiError | null>(null)
export const needsOwner = signal(false)

/** What the button names that signs in through the network's identity provider; null without one. */
export const providerName = signal<string | null>(null)
export const overview = signal<Overview | null>(null)

/** Events by type in the current range, for the navigation. */
export const totals = signal<Totals | null>(null)

/** Says on the sign-in page why the reader is there, e.g. after a password was changed. */
export const signInNotice = signal('')

effect(() => {
  const who = session.value
  setLiveReader(who === null ? '' : `${who.account.id} ${who.org.id}`)
})

export async function loadEntry(): Promise<void> {
  try {
    const state = await api.entryState()
    needsOwner.value = state.needsOwner
    providerName.value = state.provider
    session.value = state.signedIn ? await api.session() : null
    entry.value = state.signedIn ? 'signed-in' : 'signed-out'
    entryError.value = null
    if (!state.signedIn && !['/setup', '/reset', '/invitation'].includes(place.peek().path)) leave()
  } catch (error) {
    entryError.value = asApiError(error)
    entry.value = 'failed'
  }
}

/**
 * Counts by type, for the navigation and the empty states; refreshed on each page. An old answer is better than
 * none, so a failure changes nothing.
 */
export async function refreshOverview(): Promise<void> {
  try {
    overview.value = await api.overview()
  } catch {
    // The open page fetches its own data and shows its own errors.
  }
}

export function enter(found: Session): void {
  session.value = found
  entry.value = 'signed-in'
  signInNotice.value = ''
  needsOwner.value = false
  overview.value = null
  totals.value = null
}

/** Shows the sign-in page; signing in leads back to the current address. */
export function leave(notice = ''): void {
  const { path, search } = place.peek()
  const from = safeReturn(path + search)
  session.value = null
  overview.value = null
  totals.value = null
  entry.value = 'signed-out'
  signInNotice.value = notice
  if (path !== '/sign-in')
    navigate(from === '/' ? '/sign-in' : `/sign-in?to=${encodeURIComponent(from)}`, { replace: true })
}

export async function signOut(): Promise<void> {
  try {
    await changingCookie(api.signOut)
  } catch (error) {
    // Without an answer the cookie is still good: saying "signed out" would be false.
    if (!(error instanceof ApiError) || error.status !== 401) throw error
  }
  session.value = null
  overview.value = null
  totals.value = null
  entry.value = 'signed-out'
  navigate('/sign-in')
}

/** Every failure as something a page can show. A bug of ours is thrown on, so that it is not hidden as an outage. */
export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  throw error
}

export function mayManage(who: Session | null): boolean {
  return who?.role === 'owner' || who?.role === 'admin'
}
