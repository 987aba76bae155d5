/** The empty state of a page without events: what is missing, the command that sends the first event, and a key. */
import './first-event.css'
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { ApiError, api } from '../api/api.ts'
import { ownAddress } from '../app/router.ts'
import { now } from '../app/clock.ts'
import { keyPlaceholder, sampleBody, type SampleKind, sendCurl } from './curl.ts'
import { followLive } from '../live/live.ts'
import { mayManage, refreshOverview, session } from '../app/session.ts'
import { CodeBlock } from './code-block.tsx'
import { Brand } from './marks.tsx'

export interface FirstEventProps {
  title: string
  lead: ComponentChildren // which data fills the page
  kind: SampleKind
  /** For pages filled by a push instead of events. */
  push?: { path: string; body: string }
  /** Follow the live stream until the first event. Logs follows it anyway. */
  watch?: boolean
  children?: ComponentChildren
}

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
    </section>
  )
}

/** Follows the live stream until the first event, then refreshes the counts, which replaces the empty state. */
function watchForEvents(): () => void {
  const stop = new AbortController()
  const filter = { types: [], outcomes: [] }
  const watch = async (): Promise<void> => {
    const { live } = await api.events(filter, { limit: 1 }, stop.signal)
    await followLive({
      after: live,
      open: (after, signal) => api.live(filter, after, signal),
      onEvents: () => void refreshOverview(),
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
