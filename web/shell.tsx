/** The frame around every page: navigation, banners, the page of the address, and its code loaded ahead. */
import './styles/shell.css'
import './shell/palette.css'
import { useSignal, useSignalEffect } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { Dialog } from './components/dialog.tsx'
import { Navigation } from './shell/navigation.tsx'
import { PageBar, menuOpen, paletteOpen, shortcutsOpen } from './components/page-frame.tsx'
import { Palette } from './shell/palette.tsx'
import { refreshTotals } from './range/counts-query.ts'
import { navigate, path } from './app/router.ts'
import { frontPage, routeOf, routes, type PageCode, type PageRoute } from './routes.ts'
import { entry, refreshOverview, session } from './app/session.ts'
import { shortcuts, useShortcuts, type Shortcut } from './app/shortcuts.ts'
import { now, zone } from './app/clock.ts'
import { counted, localSentence } from './text/format.ts'
import { notices, refreshMs, refreshNotices, urgent } from './app/notices.ts'
import { Text } from './components/text.tsx'
import { whenIdle } from './components/rendering.tsx'
import type { Notice } from './api/webhook-api.ts'
import type { ComponentType } from 'preact'

const globalShortcuts: Shortcut[] = [
  { keys: ['?'], shown: '?', does: 'Show keyboard shortcuts', run: () => (shortcutsOpen.value = true) },
  {
    keys: ['Control+k'],
    shown: 'Ctrl K',
    does: 'Search pages and actions',
    run: () => (paletteOpen.value = true),
  },
  ...routes.map((route) => ({
    keys: [`g ${route.key}`],
    shown: `g ${route.key}`,
    does: `Go to ${route.name}`,
    run: () => navigate(route.path),
  })),
]

export function Shell() {
  useShortcuts(globalShortcuts)
  return (
    <div class="shell">
      <a class="skip-link" href="#main">
        Skip to content
      </a>
      <nav class="navigation wide" aria-label="Pages">
        <Navigation />
      </nav>
      <main id="main" class="main" tabIndex={-1}>
        {session.value?.insecure && <InsecureBanner />}
        <NoticeBar />
        <CurrentPage />
      </main>
      {menuOpen.value && (
        <Dialog title="Menu" class="menu-sheet" onClose={() => (menuOpen.value = false)}>
          <nav class="navigation" aria-label="Pages">
            <Navigation onFollow={() => (menuOpen.value = false)} />
          </nav>
          <button type="button" class="button close-menu" onClick={() => (menuOpen.value = false)}>
            Close
          </button>
        </Dialog>
      )}
      {paletteOpen.value && <Palette />}
      {shortcutsOpen.value && <ShortcutList />}
    </div>
  )
}

function InsecureBanner() {
  return (
    <p class="insecure" role="note">
      <strong>This connection is not encrypted.</strong> Anyone on the network path can read what you see and
      type. Start Sightglass with <code>--tls-cert</code> and <code>--tls-key</code>, or put an HTTPS proxy in
      front of it and set <code>--public-url</code>.
    </p>
  )
}

/** The page for the URL. The old page stays until the code of the next page has loaded. */
function CurrentPage() {
  const loads = useSignal(0)
  const failed = useSignal<PageRoute | null>(null)
  const requested = useRef<PageRoute | null>(null)
  const shown = useRef<PageRoute | null>(null)
  useEffect(prefetchWhenIdle, [session.value?.org.id])
  useSignalEffect(() => {
    const currentPath = path.value
    // Sign-out changes the URL while this frame is still rendered.
    if (entry.peek() !== 'signed-in') return
    if (currentPath === '/' || currentPath === '/sign-in' || currentPath === '/setup')
      return navigate(frontPage, { replace: true })
    failed.value = null
    const route = routeOf(currentPath)
    if (route === requested.current) return
    requested.current = route
    if (!route) return
    void refreshOverview()
    if (!route.counts) void refreshTotals()
    if (codeOf(route)) return
    loadCode(route).then(
      () => (loads.value += 1),
      () => routeOf(path.peek()) === route && (failed.value = route),
    )
  })
  void loads.value
  const route = routeOf(path.value)
  if (failed.value) return <PageFailed route={failed.value} />
  if (!route) return <NoSuchPage />
  if (codeOf(route)) shown.current = route
  const Page = shown.current && codeOf(shown.current)
  // A new time zone remounts the page, because every time and every count by day changes.
  return Page ? <Page key={`${shown.current?.path} ${zone.value}`} /> : null
}

/** A page's code is missing if Sightglass was updated while the dashboard was open. */
function PageFailed(props: { route: PageRoute }) {
  return (
    <>
      <PageBar title={props.route.name} />
      <div class="page">
        <p>This page failed to load. Sightglass may have been updated or stopped.</p>
        <p>
          <a href={props.route.path} data-native>
            Reload the dashboard
          </a>
        </p>
      </div>
    </>
  )
}

function NoSuchPage() {
  return (
    <>
      <PageBar title="Page not found" />
      <div class="page">
        <p>
          No page exists at this address. Go to{' '}
          <a href={frontPage}>{routes.find((route) => route.path === frontPage)?.name}</a>.
        </p>
      </div>
    </>
  )
}

const idleMsMax = 3_600_000
const activity = ['pointermove', 'keydown', 'wheel'] as const

/** The bar above every page while an alert is open or an endpoint needs attention. */
function NoticeBar() {
  const currentPath = path.value
  useEffect(() => void refreshNotices(), [currentPath])
  useEffect(() => {
    let usedMs = now()
    const use = (): void => void (usedMs = now())
    const timer = setInterval(() => {
      // A request extends the sign-in, so an idle page must not send any.
      const isUsed = document.visibilityState === 'visible' && now() - usedMs < idleMsMax
      if (isUsed) void refreshNotices()
    }, refreshMs)
    for (const act of activity) window.addEventListener(act, use, { passive: true })
    return () => {
      clearInterval(timer)
      for (const act of activity) window.removeEventListener(act, use)
    }
  }, [])
  // Overview lists them all.
  if (routeOf(currentPath)?.path === frontPage) return null
  const placeOf = ({ href = '/webhooks' }: Notice): string => href
  const [first, ...remainingNotices] = urgent(notices.value).filter(
    (notice) => placeOf(notice) !== currentPath,
  )
  if (first === undefined) return null
  return (
    <p class="notice-bar" role="status">
      <Text value={localSentence(first.message)} max={240} />{' '}
      <a href={placeOf(first)}>
        {remainingNotices.length === 0
          ? 'View'
          : `View this and ${counted(remainingNotices.length, 'other')}`}
      </a>
    </p>
  )
}

/** The dialog that lists the keyboard shortcuts of the current page. */
function ShortcutList() {
  return (
    <Dialog title="Keyboard shortcuts" onClose={() => (shortcutsOpen.value = false)}>
      <dl class="shortcut-list">
        {shortcuts.value.map((shortcut) => (
          <>
            <dt>
              <kbd>{shortcut.shown}</kbd>
            </dt>
            <dd>{shortcut.does}</dd>
          </>
        ))}
      </dl>
      <div class="dialog-foot">
        <button type="button" class="button" data-first-focus onClick={() => (shortcutsOpen.value = false)}>
          Close
        </button>
      </div>
    </Dialog>
  )
}

/** Page code: loaded when a page opens, or prefetched with its first queries in idle time. */
const codes = new Map<PageRoute, ComponentType>()

/** Null until loaded. Loaded code is rendered in the task of the click. */
function codeOf(route: PageRoute): ComponentType | null {
  return codes.get(route) ?? null
}

async function loadCode(route: PageRoute): Promise<PageCode> {
  const code = await route.load()
  codes.set(route, code.default)
  return code
}

/** Delay, so that the code and the queries of the open page load first. */
const waitMs = 150

/** Prefetches the other pages one at a time, so that a click in between waits for one at most. */
function prefetchWhenIdle(): () => void {
  let ended = false
  const prefetch = async (): Promise<void> => {
    for (const route of routes) {
      await whenIdle()
      if (ended) return
      if (codeOf(route)) continue // already opened
      try {
        const code = await loadCode(route)
        if (!ended) await code.prefetch?.()
      } catch {
        // Opening the page loads it again and shows the error.
      }
    }
  }
  const timer = setTimeout(() => void prefetch(), waitMs)
  return () => {
    ended = true
    clearTimeout(timer)
  }
}
