/** Saved views of Logs and Explore: named filters and queries, shared by the members of an organization. */
import { signal } from '@preact/signals'
import { exchange, get, json, post, type Session } from '../api/api.ts'
import { removePreference, readPreference } from './preferences.ts'
import { session } from './session.ts'

export interface SavedView {
  id: string
  name: string
  search: string // with its leading '?'; '' for all events
}

/** The page of a view: the query string of Explore always has a measure, that of Logs never. */
export function viewPath({ search }: { search: string }): string {
  return new URLSearchParams(search).has('measure') ? '/analytics/explore' : '/logs'
}

type ViewFields = Pick<SavedView, 'name' | 'search'>

export const viewNameCharsMax = 80

const address = (id: string): string => `/api/views/${encodeURIComponent(id)}`
const send = (method: 'PATCH' | 'DELETE', id: string, body: unknown): Promise<Response> =>
  exchange(address(id), {
    method,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

const viewCache = signal<{ orgId: string; views: SavedView[] } | null>(null)

const orgId = (): string => session.value?.org.id ?? ''

/** Null until loaded. Views of another organization are never shown. */
export function savedViews(): SavedView[] | null {
  return viewCache.value?.orgId === orgId() ? viewCache.value.views : null
}

export function maySaveViews(currentSession: Session | null): boolean {
  return currentSession !== null && currentSession.role !== 'viewer'
}

let loads = 0

/** Of several at once the one that began last counts: an earlier one may lack what was saved since. */
export async function loadViews(): Promise<void> {
  const requested = orgId()
  const load = ++loads
  const { views } = await get<{ views: SavedView[] }>('/api/views')
  if (requested === orgId() && load === loads) viewCache.value = { orgId: requested, views }
}

/** Creates a view, or replaces the filters of an existing one. */
export async function saveView({ name, search }: ViewFields): Promise<void> {
  const existingView = savedViews()?.find((view) => view.name === name)
  if (existingView) await send('PATCH', existingView.id, { search })
  else await post('/api/views', { name, search })
  await loadViews()
}

export async function renameView(id: string, name: string): Promise<void> {
  await send('PATCH', id, { name })
  await loadViews()
}

export async function deleteView(id: string): Promise<void> {
  await send('DELETE', id, {})
  await loadViews()
}

/** Restores a deleted view: its name and filters, under a new id. */
export async function restoreView({ name, search }: ViewFields): Promise<void> {
  await json(await post('/api/views', { name, search }))
  await loadViews()
}

// ---------------------------------------------------------------- views that earlier versions stored in the browser

const localKey = 'logs.views'

/** Skips entries that are not valid, such as those of another version or edited by hand. */
export function readLocalViews(text: string | null): ViewFields[] {
  try {
    const parsedViews: unknown = JSON.parse(text ?? '[]')
    return Array.isArray(parsedViews)
      ? parsedViews.filter(isView).map(({ name, search }) => ({ name, search }))
      : []
  } catch {
    return []
  }
}

function isView(value: unknown): value is ViewFields {
  if (typeof value !== 'object' || value === null || !('name' in value) || !('search' in value)) return false
  const { name, search } = value
  return (
    typeof name === 'string' && name.trim() !== '' && typeof search === 'string' && /^(\?|$)/.test(search)
  )
}

/** Views stored only in this browser by an earlier version, until they are imported or discarded. */
export const localViews = (): ViewFields[] => readLocalViews(readPreference(localKey))

export const discardLocalViews = (): void => removePreference(localKey)

/** The local views that the organization lacks. A name in use with other filters gets a number. */
export function importable(local: readonly ViewFields[], shared: readonly ViewFields[]): ViewFields[] {
  const searchByName = new Map(shared.map(({ name, search }) => [name, search]))
  const newViews: ViewFields[] = []
  for (const { name: whole, search } of local) {
    const name = [...whole.trim()].slice(0, viewNameCharsMax).join('')
    let free = name
    for (let n = 2; searchByName.has(free) && searchByName.get(free) !== search; n++)
      free = `${[...name].slice(0, viewNameCharsMax - 6).join('')} (${n})`
    if (searchByName.has(free)) continue
    searchByName.set(free, search)
    newViews.push({ name: free, search })
  }
  return newViews
}

/** Removes each imported view from the browser at once, so that a failure loses none. */
export async function importLocalViews(normal: (search: string) => string): Promise<void> {
  let pendingViews = localViews().map(({ name, search }) => ({ name, search: normal(search) }))
  await loadViews()
  pendingViews = importable(pendingViews, savedViews() ?? [])
  for (const view of pendingViews) await post('/api/views', view)
  discardLocalViews()
  await loadViews()
}
