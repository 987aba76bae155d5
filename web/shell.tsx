/** The frame around every page: navigation, the banner for an open network, the page itself, and what opens over it. */
import './styles/shell.css'
import { useSignal, useSignalEffect } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { Dialog } from './components/dialog.tsx'
import { Navigation } from './components/navigation.tsx'
import { NoticeBar } from './components/notice-bar.tsx'
import { PageBar } from './components/page-bar.tsx'
import { Palette } from './components/palette.tsx'
import { ShortcutList } from './components/shortcut-list.tsx'
import { codeOf, getReadyWhenIdle, loadCode } from './app/page-code.ts'
import { refreshTotals } from './range/totals.ts'
import { navigate, path } from './app/router.ts'
import { type PageRoute, frontPage, routeOf, routes } from './routes.ts'
import { entry, refreshOverview, session } from './app/session.ts'
import { menuOpen, paletteOpen, shortcutsOpen } from './app/shell-state.ts'
import { type Shortcut, useShortcuts } from './app/shortcuts.ts'
import { zone } from './app/zone.ts'

const own: Shortcut[] = [
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
  useShortcuts(own)
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

/** The page of the address. While the code of the next page comes, the old page stays. */
function CurrentPage() {
  const arrived = useSignal(0)
  const failed = useSignal<PageRoute | null>(null)
  const visited = useRef<PageRoute | null>(null)
  const drawn = useRef<PageRoute | null>(null)
  useEffect(getReadyWhenIdle, [session.value?.org.id])
  useSignalEffect(() => {
    const here = path.value
    // Leaving for the sign-in page changes the address while this frame is still drawn.
    if (entry.peek() !== 'signed-in') return
    if (here === '/' || here === '/sign-in' || here === '/setup')
      return navigate(frontPage, { replace: true })
    failed.value = null
    const route = routeOf(here)
    if (route === visited.current) return
    visited.current = route
    if (!route) return
    void refreshOverview()
    if (!route.counts) void refreshTotals()
    if (codeOf(route)) return
    loadCode(route).then(
      () => (arrived.value += 1),
      () => routeOf(path.peek()) === route && (failed.value = route),
    )
  })
  void arrived.value
  const route = routeOf(path.value)
  if (failed.value) return <PageFailed route={failed.value} />
  if (!route) return <NoSuchPage />
  if (codeOf(route)) drawn.current = route
  const Page = drawn.current && codeOf(drawn.current)
  // In another time zone everything is another text, and what counts by day is asked anew.
  return Page ? <Page key={`${drawn.current?.path} ${zone.value}`} /> : null
}

/** A page's code is missing when Sightglass was updated while the dashboard stood open. */
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
