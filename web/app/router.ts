/** The URL: path below the base path, query, and navigation without a page load. */
import { computed, signal } from '@preact/signals'
import { options, type VNode } from 'preact'
import { basePath } from '../api/base-path.ts'

const inBrowser = typeof window !== 'undefined'

/** The address of this appliance as the browser reaches it. */
export function ownAddress(): string {
  return `${window.location.origin}${basePath}`
}

/** Removes the base path from a path of the browser. */
export function withoutBase(path: string, base = basePath): string {
  if (base === '' || path === base) return path === base && base !== '' ? '/' : path
  return path.startsWith(`${base}/`) ? path.slice(base.length) : path
}

/** Pages write links without the base path. It is added when a link is rendered. */
export function linkBelowBase(base = basePath): void {
  if (base === '') return
  const previousHook = options.vnode
  options.vnode = (vnode: VNode) => {
    if (vnode.type === 'a') {
      const props = vnode.props as { href?: unknown }
      const { href } = props
      if (typeof href === 'string' && /^\/(?!\/)/.test(href)) props.href = base + href
    }
    previousHook?.(vnode)
  }
}

interface Place {
  path: string
  search: string // with its leading '?', or ''
  hash: string // with its leading '#', or ''
}

function currentPlace(): Place {
  if (!inBrowser) return { path: '/', search: '', hash: '' }
  const { pathname, search, hash } = window.location
  return { path: withoutBase(pathname), search, hash }
}

export const place = signal<Place>(currentPlace())
export const path = computed(() => place.value.path)
export const query = computed(() => new URLSearchParams(place.value.search))

/** Navigates within the dashboard. `replace` adds no history entry. */
export function navigate(to: string, navigateOptions: { replace?: boolean } = {}): void {
  if (navigateOptions.replace) window.history.replaceState(null, '', basePath + to)
  else window.history.pushState(null, '', basePath + to)
  const previousPath = place.peek().path
  enter()
  if (previousPath !== place.peek().path) window.scrollTo(0, 0)
}

/** What had the focus when the path changed. */
let previousFocus: Element | null = null

/** Called at a navigation, and when a closed dialog has returned the focus, which no user did. */
export function leaveFocus(): void {
  previousFocus = document.activeElement
}

/** False while an element has the focus that got it after the navigation: a new page must not take it. */
export function isFocusFree(): boolean {
  const active = document.activeElement
  return active === null || active === document.body || active === previousFocus
}

/** Publishes the place of the browser's address. */
function enter(): void {
  const to = currentPlace()
  if (to.path !== place.peek().path) leaveFocus()
  place.value = to
}

/** Sets fields of the query. An empty list removes a field; other fields stay. */
export function withQuery(search: string, changes: { [name: string]: string[] }): string {
  const params = new URLSearchParams(search)
  for (const [name, values] of Object.entries(changes)) {
    params.delete(name)
    for (const value of values) params.append(name, value)
  }
  // Asterisks and dots of type filters stay readable; everything else is encoded.
  const text = params.toString().replaceAll('%2A', '*')
  return text === '' ? '' : `?${text}`
}

/**
 * Where sign-in may redirect: only a path of this dashboard. `//host` and `/\host` would leave it, so an address
 * that does not resolve to this origin falls back to the front page.
 */
export function safeReturn(to: string | null): string {
  if (to === null || !to.startsWith('/')) return '/'
  const localOrigin = 'http://dashboard.invalid'
  if (!URL.canParse(to, localOrigin)) return '/'
  const target = new URL(to, localOrigin)
  // `/.//host` resolves to the path `//host`, which names another host when used alone.
  if (target.origin !== localOrigin || target.pathname === '/sign-in' || target.pathname.startsWith('//'))
    return '/'
  return target.pathname + target.search + target.hash
}

/** Turns clicks on links of this dashboard into navigation without a page load. */
export function followLinks(): void {
  window.addEventListener('popstate', enter)
  window.addEventListener('hashchange', enter)
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0) return
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    const link = event.target instanceof Element ? event.target.closest('a') : null
    if (!link || link.target !== '' || link.hasAttribute('download')) return
    if (link.origin !== window.location.origin || link.hasAttribute('data-native')) return
    if (link.getAttribute('href')?.startsWith('#')) return
    event.preventDefault()
    navigate(withoutBase(link.pathname) + link.search + link.hash)
  })
}
