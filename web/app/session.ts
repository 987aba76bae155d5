/** The signed-in person, their organization, and signing in and out. */
import { effect, signal } from '@preact/signals'
import { ApiError, api, changingCookie, type Overview, type Session, type Totals } from '../api/api.ts'
import { setLiveReader } from '../api/shared-live.ts'
import { navigate, place, safeReturn } from './router.ts'

type Entry = 'asking' | 'signed-out' | 'signed-in' | 'failed'

export const entry = signal<Entry>('asking')
export const session = signal<Session | null>(null)
export const entryError = signal<ApiError | null>(null)
export const needsOwner = signal(false)

/** The name of the identity provider on the sign-in button; null without one. */
export const providerName = signal<string | null>(null)
export const overview = signal<Overview | null>(null)

/** Events by type in the current range, for the navigation. */
export const totals = signal<Totals | null>(null)

/** The reason shown on the sign-in page, such as a changed password. */
export const signInNotice = signal('')

effect(() => {
  const currentSession = session.value
  setLiveReader(currentSession === null ? '' : `${currentSession.account.id} ${currentSession.org.id}`)
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

let overviewRequests = 0
let overviewShown = 0

/**
 * Counts by type, for the navigation and the empty states, refreshed on each page. Ignores errors, because old counts
 * are better than none.
 */
export async function refreshOverview(): Promise<void> {
  const request = ++overviewRequests
  try {
    const newOverview = await api.overview()
    if (request < overviewShown) return // a later request was answered before
    overviewShown = request
    overview.value = newOverview
  } catch {
    // The open page shows its own errors.
  }
}

export function enter(newSession: Session): void {
  session.value = newSession
  entry.value = 'signed-in'
  signInNotice.value = ''
  needsOwner.value = false
  overview.value = null
  totals.value = null
}

/** Shows the sign-in page. Signing in returns to the current address. */
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
    // Without a response the cookie is still valid, so the person is not signed out.
    if (!(error instanceof ApiError) || error.status !== 401) throw error
  }
  session.value = null
  overview.value = null
  totals.value = null
  entry.value = 'signed-out'
  navigate('/sign-in')
}

/** Converts a failure to an ApiError that a page can show. Rethrows bugs, so that they do not look like an outage. */
export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  throw error
}

export function mayManage(currentSession: Session | null): boolean {
  return currentSession?.role === 'owner' || currentSession?.role === 'admin'
}
