/** The controls above a page of counts: live state, site, range and its dialog, time zone and comparison. */
import './range-bar.css'
import {
  choiceOf,
  chooseRange,
  chooseTimes,
  periodSentence,
  runningRanges,
  type RunningRange,
} from './range.ts'
import { useSignal, type ReadonlySignal } from '@preact/signals'
import { dayOf, dayStart, isoTime, localMoment, now, zone } from '../app/clock.ts'
import { PageBar } from '../components/page-frame.tsx'
import { ZoneChoice } from '../components/time.tsx'
import { clockTime, hourTime } from '../text/format.ts'
import { isRefused, type LiveState } from '../live/live.ts'
import { query } from '../app/router.ts'
import { visibleText } from '../components/text.tsx'
import { useId } from 'preact/hooks'
import { Dialog } from '../components/dialog.tsx'
import type { ComponentChildren } from 'preact'
import type { PeriodView } from '../api/api.ts'
import { countsRetentionDays } from '../../db/rules/retention-days.ts'

interface RangeBarProps {
  title: string
  period: PeriodView | null
  connection?: ReadonlySignal<LiveState> // of a page that follows live events
  compares?: boolean // default: true
  more?: ComponentChildren // further controls, such as Share
}

export function RangeBar({ title, period, connection, compares = true, more: extraControls }: RangeBarProps) {
  return (
    <PageBar title={title}>
      <div class="range-controls" role="group" aria-label="Range and site">
        {connection && <LiveDot connection={connection} />}
        <SiteChoice period={period} />
        <RangeSelect period={period} />
        <ZoneChoice />
        {compares && (
          <label class="button compare-choice">
            <input
              type="checkbox"
              checked={choiceOf(query.value).compare}
              onChange={(event) => chooseRange({ compare: event.currentTarget.checked })}
            />
            Compare
          </label>
        )}
        {extraControls}
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
  const knownSites = period?.sites ?? []
  const unknown = chosen.filter((siteId) => !knownSites.some((site) => site.siteId === siteId))
  const allSites = [...knownSites, ...unknown.map((siteId) => ({ siteId, name: null }))]
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
        {allSites.map(({ siteId, name }) => (
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
  const choosing = useSignal(false)
  return (
    <span class="range-choice">
      <select
        aria-label="Range"
        value={choice.range ?? 'custom'}
        onChange={(event) => {
          const chosen = event.currentTarget.value
          event.currentTarget.value = choice.range ?? 'custom'
          if (chosen === 'dates') choosing.value = true
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
      {choosing.value && (
        <RangeDialog {...shownDays(period)} onChoose={chooseTimes} onClose={() => (choosing.value = false)} />
      )}
    </span>
  )
}

/** The initial range of the dialog: the selected one, or the whole days of a relative one. */
function shownDays(period: PeriodView | null): { sinceMs: number; untilMs: number } {
  const sinceMs = Date.parse(period?.since ?? isoTime(now()))
  const untilMs = Date.parse(period?.until ?? '')
  if (period?.range === 'custom') return { sinceMs, untilMs }
  return { sinceMs: dayStart(dayOf(sinceMs)) ?? sinceMs, untilMs: dayStart(dayOf(now()), 1) ?? now() }
}

export function PeriodLine({ period }: { period: PeriodView }) {
  return <p class="period-line muted">{periodSentence(period, choiceOf(query.value).compare)}</p>
}

interface RangeDialogProps {
  /** The current range, the initial value of the fields. */
  sinceMs: number
  untilMs: number
  onChoose: (sinceMs: number, untilMs: number) => void
  onClose: () => void
}

interface Fields {
  fromDay: string
  fromTime: string
  toDay: string
  toTime: string
}

/** Parses the fields. A day without a time is a whole day. Returns the error as a string. */
export function rangeOf({ fromDay, fromTime, toDay, toTime }: Fields, timeZone = zone.value) {
  const momentAt = (day: string, time: string, later: number) =>
    time === '' ? dayStart(day, later, timeZone) : localMoment(`${day}T${time}`, timeZone)
  const sinceMs = momentAt(fromDay, fromTime, 0)
  const untilMs = momentAt(toDay, toTime, 1)
  if (sinceMs === null || untilMs === null) return 'Enter a start and an end date.'
  if (untilMs <= sinceMs) return 'The end must be after the start.'
  return { sinceMs, untilMs }
}

/** The fields of a range. For a range that ends at midnight, the last day is the day before. */
export function fieldsOf(sinceMs: number, untilMs: number, timeZone = zone.value): Fields {
  const time = (ms: number) =>
    dayStart(dayOf(ms, timeZone), 0, timeZone) === ms ? '' : clockTime(ms, timeZone)
  return {
    fromDay: dayOf(sinceMs, timeZone),
    fromTime: time(sinceMs),
    toDay: dayOf(time(untilMs) === '' ? untilMs - 1 : untilMs, timeZone),
    toTime: time(untilMs),
  }
}

/** Selects a range by dates, optionally with times, in the chosen zone. */
export function RangeDialog({ sinceMs, untilMs, onChoose, onClose }: RangeDialogProps) {
  const fields = useSignal(fieldsOf(sinceMs, untilMs))
  const wrong = useSignal('')
  const set = (change: Partial<Fields>): void => {
    fields.value = { ...fields.value, ...change }
    wrong.value = ''
  }
  const { fromDay, fromTime, toDay, toTime } = fields.value
  return (
    <Dialog title="Choose dates" onClose={onClose}>
      <form
        class="range-form"
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          const range = rangeOf(fields.value)
          if (typeof range === 'string') {
            wrong.value = range
            return
          }
          onClose()
          onChoose(range.sinceMs, range.untilMs)
        }}
      >
        <Moment
          name="From"
          day={fromDay}
          time={fromTime}
          onDay={(day) => set({ fromDay: day })}
          first
          onTime={(time) => set({ fromTime: time })}
        />
        <Moment
          name="To"
          day={toDay}
          time={toTime}
          onDay={(day) => set({ toDay: day })}
          onTime={(time) => set({ toTime: time })}
        />
        <p class="muted">
          {zone.value}. Leave the times empty for whole days. Counts are stored for {countsRetentionDays}{' '}
          days.
        </p>
        {wrong.value !== '' && (
          <p class="range-wrong" role="alert">
            {wrong.value}
          </p>
        )}
        <div class="dialog-foot">
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="button primary">
            Show range
          </button>
        </div>
      </form>
    </Dialog>
  )
}

interface MomentProps {
  name: string
  day: string
  time: string
  onDay: (day: string) => void
  onTime: (time: string) => void
  first?: boolean
}

function Moment({ name, day, time, onDay, onTime, first }: MomentProps) {
  const id = useId()
  return (
    <div class="range-moment">
      <label>
        {name}
        <input
          type="date"
          value={day}
          max={dayOf(now())}
          required
          {...(first && { 'data-first-focus': true })}
          onInput={(event) => onDay(event.currentTarget.value)}
        />
      </label>
      <label for={id}>
        <span class="visually-hidden">{name}, </span>time (optional)
        <input id={id} type="time" value={time} onInput={(event) => onTime(event.currentTarget.value)} />
      </label>
    </div>
  )
}
