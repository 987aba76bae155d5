/** Below the filters: text search, time range with longer ranges for an empty result, saved views and export. */
import './find-bar.css'
import { useComputed, useSignal, useSignalEffect } from '@preact/signals'
import { isoTime, now } from '../../app/clock.ts'
import { Disclosure } from '../../components/disclosure.tsx'
import { ZoneChoice } from '../../components/time.tsx'
import { RangeDialog } from '../../range/range-bar.tsx'
import { ShareButton } from '../../range/share.tsx'
import { navigate, place, query, withQuery } from '../../app/router.ts'
import { SavedViews } from '../../components/saved-views.tsx'
import { exportHref, hasText, textSinceMs, viewSearch } from './filter.ts'
import { hourMs } from '../../../db/contract/units.ts'

function go(changes: { [name: string]: string[] }, replace = false): void {
  const currentPlace = place.peek()
  navigate(currentPlace.path + withQuery(currentPlace.search, { event: [], ...changes }), { replace })
}

export function FindBar() {
  return (
    <div class="find-bar">
      <Search />
      <TimeChoice />
      <ZoneChoice />
      <SavedViews what="filters" path="/logs" searchOf={viewSearch} hasLocal />
      <ShareButton
        page="view"
        search={() => viewSearch(place.peek().search)}
        about="It shows the events of these filters, in the last 24 hours unless a time is chosen."
      />
      <Disclosure label="Export" id="export-events">
        <Export />
      </Disclosure>
    </div>
  )
}

const settleMs = 350

/** A search requires a start time. Typing one selects the last 24 hours if no time is selected. */
function Search() {
  const typed = useSignal(query.peek().get('q') ?? '')
  const timer = useSignal(0)
  const urlText = useComputed(() => query.value.get('q') ?? '')
  useSignalEffect(() => {
    typed.value = urlText.value
  })
  const find = (text: string): void => {
    clearTimeout(timer.peek())
    const trimmed = text.trim()
    if (trimmed === urlText.peek()) return
    const since = query.peek().get('since') ?? isoTime(textSinceMs(now()))
    go(trimmed === '' ? { q: [] } : { q: [trimmed], since: [since] })
  }
  return (
    <input
      type="search"
      class="search-field"
      aria-label="Find text in events"
      placeholder="Find text in events"
      autocomplete="off"
      spellcheck={false}
      maxLength={200}
      value={typed.value}
      onInput={(event) => {
        const text = event.currentTarget.value
        typed.value = text
        clearTimeout(timer.peek())
        timer.value = Number(setTimeout(() => find(text), settleMs))
      }}
      onKeyDown={(event) => {
        if (event.key === 'Enter') find(typed.value)
      }}
    />
  )
}

function TimeChoice() {
  const since = query.value.get('since')
  const until = query.value.get('until')
  const knownRange =
    until === null ? timeRanges.find(({ hours }) => hours !== null && sinceOf(hours) === since) : undefined
  const value = since === null && until === null ? 'Any time' : (knownRange?.name ?? 'chosen')
  const choosing = useSignal(false)
  return (
    <>
      <select
        aria-label="Time"
        value={value}
        onChange={(event) => {
          if (event.currentTarget.value === 'dates') {
            event.currentTarget.value = value
            choosing.value = true
            return
          }
          const hours = timeRanges.find(({ name }) => name === event.currentTarget.value)?.hours ?? null
          // A search requires a start time.
          go({ since: hours === null ? [] : [sinceOf(hours)], until: [], ...(hours === null && { q: [] }) })
        }}
      >
        {timeRanges.map(({ name }) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
        {value === 'chosen' && <option value="chosen">Custom range</option>}
        <option value="dates">Choose dates…</option>
      </select>
      {choosing.value && (
        <RangeDialog
          sinceMs={Date.parse(since ?? sinceOf(24)) || now()}
          untilMs={until === null ? now() : Date.parse(until) || now()}
          onChoose={(from, to) => go({ since: [isoTime(from)], until: [isoTime(to)] })}
          onClose={() => (choosing.value = false)}
        />
      )}
    </>
  )
}

function Export() {
  return (
    <div class="export-choices">
      <p>Exports all events that match the filters.</p>
      <a class="button" href={exportHref(query.value, 'csv')} download data-native>
        CSV
      </a>
      <a class="button" href={exportHref(query.value, 'ndjson')} download data-native>
        NDJSON
      </a>
      <a class="button" href={exportHref(query.value, 'parquet')} download data-native>
        Parquet
      </a>
      {hasText(query.value) && (
        <p class="muted">Text search reads every event in the range, so the export can take a while.</p>
      )}
    </div>
  )
}

interface TimeRange {
  name: string
  hours: number | null // null: all time
}

const timeRanges: readonly TimeRange[] = [
  { name: 'Any time', hours: null },
  { name: 'Last hour', hours: 1 },
  { name: 'Last 24 hours', hours: 24 },
  { name: 'Last 7 days', hours: 24 * 7 },
  { name: 'Last 30 days', hours: 24 * 30 },
  { name: 'Last 90 days', hours: 24 * 90 },
]

/** On the hour, because counts are stored per hour. */
export function sinceOf(hours: number): string {
  return isoTime(Math.floor((now() - hours * hourMs) / hourMs) * hourMs)
}

/** Earlier than any stored event, because a search requires a start. */
export const sinceEver = '2000-01-01'

/**
 * Suggestions for an empty result: the next longer ranges, and all time. `since` is null without a start; then
 * no range is longer.
 */
export function longerTimes(
  since: string | null,
  until: string | null,
  hasText: boolean,
): { name: string; since: string[] }[] {
  if (since === null && until === null) return []
  const sinceMs = since === null ? Number.POSITIVE_INFINITY : Date.parse(since)
  const longer = timeRanges.flatMap(({ name, hours }) => {
    if (hours === null || Date.parse(sinceOf(hours)) >= sinceMs) return []
    return [{ name, since: [sinceOf(hours)] }]
  })
  const isAll = since === sinceEver && until === null
  return [...longer.slice(0, 2), ...(isAll ? [] : [{ name: 'Any time', since: hasText ? [sinceEver] : [] }])]
}
