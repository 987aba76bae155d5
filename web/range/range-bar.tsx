/** The controls above a page of counts: live state, site, range, time zone and comparison. */
import { chooseRange, chooseTimes } from './choose-range.ts'
import './range-bar.css'
import { type ReadonlySignal, useSignal } from '@preact/signals'
import type { PeriodView } from '../api/api.ts'
import { isoTime, now } from '../app/clock.ts'
import { PageBar } from '../components/page-frame.tsx'
import { ZoneChoice } from '../components/zone-choice.tsx'
import { hourTime } from '../text/format.ts'
import { isRefused, type LiveState } from '../live/live.ts'
import { query } from '../app/router.ts'
import { visibleText } from '../text/text.ts'
import { choiceOf, periodSentence, type RunningRange, runningRanges } from './range.ts'
import { dayOf, dayStart } from '../app/zone.ts'
import { RangeDialog } from './range-dialog.tsx'

interface RangeBarProps {
  title: string
  period: PeriodView | null
  connection: ReadonlySignal<LiveState>
}

export function RangeBar({ title, period, connection }: RangeBarProps) {
  return (
    <PageBar title={title}>
      <div class="range-controls" role="group" aria-label="Range and site">
        <LiveDot connection={connection} />
        <SiteChoice period={period} />
        <RangeSelect period={period} />
        <ZoneChoice />
        <label class="button compare-choice">
          <input
            type="checkbox"
            checked={choiceOf(query.value).compare}
            onChange={(event) => chooseRange({ compare: event.currentTarget.checked })}
          />
          Compare
        </label>
      </div>
    </PageBar>
  )
}

const liveWords = { live: 'Live', connecting: 'Connecting', lost: 'Connection lost, retrying' } as const

export function liveText(connection: LiveState): string {
  const refused = connection.state === 'lost' && isRefused(connection.error)
  return refused ? 'Not live' : liveWords[connection.state]
}

/** A page that cannot count is not live, whatever the connection state. */
function LiveDot({ connection }: { connection: ReadonlySignal<LiveState> }) {
  return (
    <span class={`live-dot ${connection.value.state}`} role="status">
      <i aria-hidden="true" />
      {liveText(connection.value)}
    </span>
  )
}

const nameCharsMax = 40

function SiteChoice({ period }: { period: PeriodView | null }) {
  const chosen = choiceOf(query.value).siteIds
  const known = period?.sites ?? []
  const unknown = chosen.filter((siteId) => !known.some((site) => site.siteId === siteId))
  const all = [...known, ...unknown.map((siteId) => ({ siteId, name: null }))]
  return (
    <span class="range-choice">
      <select
        aria-label="Site"
        value={chosen[0] ?? ''}
        onChange={(event) => {
          const siteId = event.currentTarget.value
          chooseRange({ siteIds: siteId === '' ? [] : [siteId] })
        }}
      >
        <option value="">All sites</option>
        {all.map(({ siteId, name }) => (
          <option key={siteId} value={siteId}>
            {visibleText(name ?? siteId).slice(0, nameCharsMax)}
          </option>
        ))}
      </select>
    </span>
  )
}

function RangeSelect({ period }: { period: PeriodView | null }) {
  const choice = choiceOf(query.value)
  const custom = choice.range === null
  const asking = useSignal(false)
  return (
    <span class="range-choice">
      <select
        aria-label="Range"
        value={choice.range ?? 'custom'}
        onChange={(event) => {
          const chosen = event.currentTarget.value
          event.currentTarget.value = choice.range ?? 'custom'
          if (chosen === 'dates') asking.value = true
          else chooseRange({ range: chosen as RunningRange, since: null, until: null })
        }}
      >
        {Object.entries(runningRanges).map(([range, name]) => (
          <option key={range} value={range}>
            {name}
          </option>
        ))}
        {custom && (
          <option value="custom">
            {period?.range === 'custom'
              ? `${hourTime(Date.parse(period.since))} – ${hourTime(Date.parse(period.until))}`
              : 'Custom range'}
          </option>
        )}
        <option value="dates">Choose dates…</option>
      </select>
      {asking.value && (
        <RangeDialog {...shownDays(period)} onChoose={chooseTimes} onClose={() => (asking.value = false)} />
      )}
    </span>
  )
}

/** The initial range of the dialog: the selected one, or the whole days of a relative one. */
function shownDays(period: PeriodView | null): { sinceMs: number; untilMs: number } {
  const [sinceMs, untilMs] = [Date.parse(period?.since ?? isoTime(now())), Date.parse(period?.until ?? '')]
  if (period?.range === 'custom') return { sinceMs, untilMs }
  return { sinceMs: dayStart(dayOf(sinceMs)) ?? sinceMs, untilMs: dayStart(dayOf(now()), 1) ?? now() }
}

export function PeriodLine({ period }: { period: PeriodView }) {
  return <p class="period-line muted">{periodSentence(period, choiceOf(query.value).compare)}</p>
}
