/**
 * Shares one live stream between the tabs of a browser: reads it once and sends each tab the events of its filter. The
 * events between a tab's position and the stream's are fetched first, so a new tab has no gaps and no duplicates.
 */
import { messageReader, type StreamMessage } from '../api/shared-live.ts'
import { traceParameter } from '../../db/contract/event-fields.ts'
import { eventTimeMs, fieldFilters } from '../api/field-filters.ts'
import type { EventFilter, ReceivedEvent } from '../api/event-shapes.ts'

/** Receives the stream of one tab, as the text of a server-sent event stream. */
interface LiveSink {
  begin(): void
  text(text: string): void
  end(): void
  refuse(answer: Response): void // the appliance rejected the stream
  unreachable(): void
}

export interface HubSource {
  /** Opens the unfiltered stream at the current position. */
  stream: (signal: AbortSignal) => Promise<Response>
  /** Fetches the events of a filter between two positions. */
  missed: (filter: EventFilter, position: string, until: string, signal: AbortSignal) => Promise<Response>
  lingerMs?: number
  silenceMsMax?: number
}

interface Tab {
  filter: EventFilter
  sink: LiveSink
  begun: boolean // the tab has its first message
  waiting: StreamMessage[] | null // queued while missed events are fetched
  known: Set<string> // ids of events that the tab had before the stream delivered them
}

interface Missed {
  events: ReceivedEvent[]
  position: string
  more: boolean
  ahead: boolean // the requested start lies after the requested end
}

/** Tabs reconnect after each refresh, so the stream stays open during short pauses. */
const lingerMsDefault = 5_000

const eventsText = (id: string, events: ReceivedEvent[]): string =>
  `id: ${id}\nevent: events\ndata: ${JSON.stringify({ events })}\n\n`

/** The state of a hub. */
interface Hub {
  source: HubSource
  tabs: Set<Tab>
  stream: { ready: Promise<Response | null>; stop: AbortController } | null
  streamAt: string // current position of the stream
  linger: ReturnType<typeof setTimeout> | undefined
}

export function createHub(source: HubSource) {
  const hub: Hub = { source, tabs: new Set(), stream: null, streamAt: '', linger: undefined }
  return {
    /** Follows the stream from `after` until the returned function is called or the sink ends. */
    follow(filter: EventFilter, position: string, sink: LiveSink): () => void {
      const stop = new AbortController()
      const tab: Tab = { filter, sink, begun: false, waiting: [], known: new Set() }
      clearTimeout(hub.linger)
      join(hub, tab, position, stop.signal).catch(() => {
        // A tab that was notified and removed already knows about the break.
        const wasNotified = !hub.tabs.delete(tab) && tab.begun
        if (!stop.signal.aborted && !wasNotified) notifyEnd(tab)
      })
      return () => {
        stop.abort()
        leave(hub, tab)
      }
    },
  }
}

function notifyEnd({ begun: hasBegun, sink }: Tab): void {
  if (hasBegun) sink.end()
  else sink.unreachable()
}

/** Notifies every tab of a break. Each reconnects with its own position. */
function breakOff(hub: Hub, controller: AbortController): void {
  if (hub.stream?.stop !== controller) return
  controller.abort()
  hub.stream = null
  for (const tab of hub.tabs) notifyEnd(tab)
  hub.tabs.clear()
}

/** Null when the stream is open; otherwise the response that rejected it. Rejects without a response. */
function opened(hub: Hub): Promise<Response | null> {
  if (hub.stream !== null) return hub.stream.ready
  const stop = new AbortController()
  const ready = hub.source
    .stream(stop.signal)
    .then((answer) => (answer.ok ? begin(hub, answer, stop) : answer))
  const forget = (): void => {
    if (hub.stream?.stop === stop) hub.stream = null
  }
  ready.then((refused) => refused !== null && forget(), forget)
  hub.stream = { ready, stop }
  return ready
}

/** Resolves with the first message, which contains the start position. */
function begin(hub: Hub, answer: Response, stop: AbortController): Promise<null> {
  return new Promise((resolve, reject) => {
    void readAll(answer, hub.source.silenceMsMax ?? 25_000, stop.signal, (messages) => {
      hand(hub.tabs, messages)
      hub.streamAt = messages.findLast(({ id }) => id !== null)?.id ?? hub.streamAt
      if (messages.length > 0) resolve(null)
    })
      .catch(() => {})
      .finally(() => {
        breakOff(hub, stop)
        reject(new TypeError('the stream ended'))
      })
  })
}

function leave(hub: Hub, tab: Tab): void {
  hub.tabs.delete(tab)
  clearTimeout(hub.linger)
  if (hub.tabs.size > 0) return
  hub.linger = setTimeout(() => {
    if (hub.tabs.size === 0 && hub.stream !== null) breakOff(hub, hub.stream.stop)
  }, hub.source.lingerMs ?? lingerMsDefault)
}

async function join(hub: Hub, tab: Tab, startPosition: string, signal: AbortSignal): Promise<void> {
  const { source, tabs } = hub
  const refused = await opened(hub)
  if (signal.aborted) return
  if (refused !== null) return tab.sink.refuse(refused.clone())
  // From here on, events of the stream are queued. The fetch below ends at the stream's position.
  tabs.add(tab)
  const until = hub.streamAt
  const missed = await walk(source, tab.filter, [startPosition, until], signal, ({ events, position }) => {
    if (!tabs.has(tab)) return
    if (!tab.begun) tab.sink.begin()
    tab.begun = true
    if (events.length > 0) tab.sink.text(eventsText(position, events))
  })
  // The tab may be ahead of the stream. Its events must not be sent twice.
  const ahead =
    missed === 'ahead' &&
    (await walk(source, tab.filter, [until, startPosition], signal, ({ events }) => {
      for (const { event } of events) tab.known.add(event.id)
    }))
  const answer = missed instanceof Response ? missed : ahead
  if (signal.aborted || !tabs.has(tab)) return
  if (answer instanceof Response) {
    tabs.delete(tab)
    return tab.begun ? tab.sink.end() : tab.sink.refuse(answer)
  }
  const waiting = tab.waiting ?? []
  tab.waiting = null
  hand(new Set([tab]), waiting)
}

/** Fetches all pages between two positions. Reports a start beyond the end, or the response that rejected it. */
async function walk(
  source: HubSource,
  filter: EventFilter,
  [startPosition, until]: [string, string],
  signal: AbortSignal,
  onPage: (page: Missed) => void,
): Promise<'behind' | 'ahead' | Response> {
  let position = startPosition
  for (;;) {
    const answer = await source.missed(filter, position, until, signal)
    if (!answer.ok) return answer
    const page = (await answer.json()) as Missed
    if (signal.aborted) return 'behind'
    onPage(page)
    if (page.ahead) return 'ahead'
    if (!page.more) return 'behind'
    position = page.position
  }
}

/** Sends messages to tabs. An empty list is a heartbeat. */
function hand(tabs: ReadonlySet<Tab>, messages: StreamMessage[]): void {
  for (const tab of tabs) {
    if (tab.waiting !== null) tab.waiting.push(...messages)
    else if (messages.length === 0) tab.sink.text(': quiet\n\n')
  }
  for (const message of messages) {
    if (message.event !== 'events' || message.id === null) continue
    const open = [...tabs].filter((tab) => tab.waiting === null)
    if (open.length === 0) continue
    const { events } = JSON.parse(message.data) as { events: ReceivedEvent[] }
    for (const { filter, known: knownIds, sink } of open) {
      const tabEvents = events.filter(
        (candidate) => !knownIds.has(candidate.event.id) && matchesFilter(filter, candidate),
      )
      sink.text(
        tabEvents.length > 0
          ? eventsText(message.id, tabEvents)
          : `id: ${message.id}\nevent: moved\ndata: {}\n\n`,
      )
    }
  }
}

/** Resolves at the end of the stream, or after too long a silence. */
async function readAll(
  answer: Response,
  silenceMsMax: number,
  signal: AbortSignal,
  onMessages: (messages: StreamMessage[]) => void,
): Promise<void> {
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader()
  if (!reader) return
  const read = messageReader()
  let silence: ReturnType<typeof setTimeout> | undefined
  const cancel = (): void => void reader.cancel().catch(() => {})
  signal.addEventListener('abort', cancel)
  try {
    for (;;) {
      clearTimeout(silence)
      silence = setTimeout(cancel, silenceMsMax)
      const { done, value } = await reader.read()
      if (done) return
      onMessages(read(value))
    }
  } finally {
    clearTimeout(silence)
    signal.removeEventListener('abort', cancel)
    cancel()
  }
}

/** Whether an event matches a filter, as in GET /v1/traces (contract §6). */
type Field = (received: ReceivedEvent) => unknown

/** Derives the decision like the appliance if the event has none. */
function decisionOf({ event: { type, outcome, policy } }: ReceivedEvent): unknown {
  if (policy?.decision) return policy.decision
  if (type !== 'authz.evaluated') return null
  return outcome === 'blocked' ? 'deny' : outcome === 'success' ? 'allow' : null
}

const byParameter = Object.fromEntries(fieldFilters.map(({ parameter, valueOf }) => [parameter, valueOf]))

const fields: { readonly [name: string]: Field } = {
  ...byParameter,
  class: byParameter[traceParameter('class')]!, // the same function, so that values of both names are alternatives
  decision: decisionOf,
}

const isOneOf = (accepted: readonly string[], value: unknown): boolean =>
  accepted.length === 0 || accepted.includes(typeof value === 'string' ? value : '')

const isOfType = (accepted: readonly string[], type: string): boolean =>
  accepted.length === 0 ||
  accepted.some((pattern) =>
    pattern.endsWith('.*') ? type.startsWith(pattern.slice(0, -1)) : type === pattern,
  )

/** Unknown filters match every event, because an extra event is better than a missing one. */
export function matchesFilter(
  { types, outcomes, where: conditions = [] }: EventFilter,
  received: ReceivedEvent,
): boolean {
  const { event, receivedAt } = received
  if (!isOfType(types, event.type) || !isOneOf(outcomes, event.outcome)) return false
  const byField = new Map<Field, string[]>()
  const atMs = eventTimeMs(Date.parse(event.occurredAt), Date.parse(receivedAt))
  for (const { name, value } of conditions) {
    if (name === 'since' && atMs < Date.parse(value)) return false
    if (name === 'until' && atMs >= Date.parse(value)) return false
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined
    if (field) byField.set(field, [...(byField.get(field) ?? []), value])
  }
  return [...byField].every(([field, accepted]) => isOneOf(accepted, field(received)))
}
