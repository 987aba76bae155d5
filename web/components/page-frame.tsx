/** The parts that pages share: the bar above every page, and the empty state of a page without events. */
import './page-frame.css'
import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, api, type FirstSource } from '../api/api.ts'
import { isFocusFree, ownAddress } from '../app/router.ts'
import { now } from '../app/clock.ts'
import {
  CodeBlock,
  importLogCommand,
  keyPlaceholder,
  sampleBody,
  sendCurl,
  type SampleKind,
} from './copy.tsx'
import { followLive } from '../live/live.ts'
import { mayManage, overview, refreshOverview, session } from '../app/session.ts'
import { Brand } from './marks.tsx'

/** The overlay over the page: the phone's menu, the palette, or the list of shortcuts. */
export const menuOpen = signal(false)
export const paletteOpen = signal(false)
export const shortcutsOpen = signal(false)

let titlesShown = 0

/** The page's title and controls, the menu button and the command palette. */
export function PageBar(props: { title: string; children?: ComponentChildren }) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${props.title} · Sightglass`
    // After navigation focus moves to the new title, for screen readers. The first load leaves focus to the browser.
    // This runs after the paint, when the user may have focused something on the page already.
    if (titlesShown > 0 && isFocusFree()) heading.current?.focus({ preventScroll: true })
    titlesShown += 1
  }, [props.title])
  return (
    <header class="page-bar">
      <button
        type="button"
        class="button menu-button"
        aria-haspopup="dialog"
        onClick={() => (menuOpen.value = true)}
      >
        Menu
      </button>
      <h1 ref={heading} tabIndex={-1}>
        {props.title}
      </h1>
      {props.children}
      <button
        type="button"
        class="button go-to"
        aria-haspopup="dialog"
        aria-keyshortcuts="Control+K"
        onClick={() => (paletteOpen.value = true)}
      >
        Go to… <kbd aria-hidden="true">Ctrl K</kbd>
      </button>
    </header>
  )
}

interface FirstEventProps {
  title: string
  lead: ComponentChildren // which data fills the page
  kind: SampleKind
  /** For pages filled by a push instead of events. */
  push?: { path: string; body: string }
  /** Follow the live stream until the first event. Logs follows it anyway. */
  watch?: boolean
  children?: ComponentChildren
}

/** The empty state of a page without events: the missing data, the command that sends the first event, and a key. */
export function FirstEvent(props: FirstEventProps) {
  const [body] = useState(() => sampleBody(props.kind, now()))
  useEffect(() => (props.watch ? watchForEvents() : undefined), [props.watch])
  const url = session.value?.ingestUrl ?? ownAddress()
  const { push } = props
  const task = push === undefined ? 'send the first event' : 'send the first push'
  return (
    <section class="panel first-event">
      <Brand sizePx={40} empty />
      <h2>{props.title}</h2>
      {props.children}
      <p class="muted">
        {props.lead}{' '}
        {mayManage(session.value)
          ? 'Create an ingest key in Settings'
          : 'Ask an owner or admin for an ingest key'}
        , insert it below, and {task}:
      </p>
      <CodeBlock
        text={
          push === undefined
            ? sendCurl(url, keyPlaceholder, body)
            : sendCurl(url, keyPlaceholder, push.body, push.path)
        }
        label={push === undefined ? 'Command that sends a first event' : 'Command that sends a first push'}
        copyLabel="Copy command"
      />
      {mayManage(session.value) && (
        <a class="button primary" href="/settings/ingest-keys">
          Create an ingest key
        </a>
      )}
      {push === undefined && <Guides />}
      {props.kind === 'agent' && push === undefined && <FirstLog />}
    </section>
  )
}

const guides = [
  { path: 'browser', name: 'Browser and WebMCP' },
  { path: 'frameworks', name: 'Node frameworks' },
  { path: 'opentelemetry', name: 'OpenTelemetry' },
  { path: 'languages', name: 'Python, Go and PHP' },
  { path: 'moving', name: 'Move from another vendor' },
]

/** They create a key where it is needed. */
function Guides() {
  return (
    <p class="muted guides">
      Step by step:{' '}
      {guides.map(({ path, name }, index) => (
        <>
          {index > 0 && ' · '}
          <a href={`/docs/${path}`} data-native>
            {name}
          </a>
        </>
      ))}
    </p>
  )
}

/** The other way to a first event: the log that a web server has written already. */
function FirstLog() {
  const [first, setFirst] = useState<FirstSource | null>(null)
  useEffect(() => {
    const stop = new AbortController()
    // Without an answer the page has the other command.
    api.firstSource(stop.signal).then(setFirst, () => {})
    return () => stop.abort()
  }, [])
  if (first === null) return null
  return (
    <div class="first-log">
      <h3>Have an access log?</h3>
      <p class="muted">
        The access log of your web server already shows agents, so the site needs no change. Run this command
        on the machine of this server, with the path of your log:
      </p>
      <CodeBlock
        text={importLogCommand(first)}
        label="Command that imports an access log"
        copyLabel="Copy command"
      />
      <p class="muted">
        Use <code>watch</code> instead of <code>import access</code> to follow the log. The{' '}
        <a href="/docs/access-logs" data-native>
          guide
        </a>{' '}
        shows how to read the log of another machine, and what is stored.
      </p>
    </div>
  )
}

/**
 * Follows the live stream and refreshes the total when events arrive, at most once per `restMs`. The first event of all
 * replaces the empty state.
 */
export function watchForEvents(restMs = 0): () => void {
  const stop = new AbortController()
  let refreshedMs = -Infinity
  let timer: ReturnType<typeof setTimeout> | null = null
  const refresh = (): void => {
    timer ??= setTimeout(
      () => {
        timer = null
        refreshedMs = performance.now()
        void refreshOverview()
      },
      Math.max(0, refreshedMs + restMs - performance.now()),
    )
  }
  stop.signal.addEventListener('abort', () => timer !== null && clearTimeout(timer))
  const filter = { types: [], outcomes: [] }
  const watch = async (): Promise<void> => {
    const { events, live } = await api.events(filter, { limit: 1 }, stop.signal)
    // It may have arrived before the stream begins.
    if (events.length > 0 && overview.peek()?.total === 0) refresh()
    await followLive({
      after: live,
      open: (position, signal) => api.live(filter, position, signal),
      onEvents: refresh,
      onState: () => {},
      onForgotten: () => {},
      signal: stop.signal,
    })
  }
  watch().catch((error: unknown) => {
    // The page works without the stream; reopening it shows new events.
    if (!(error instanceof ApiError) && !stop.signal.aborted) throw error
  })
  return () => stop.abort()
}
