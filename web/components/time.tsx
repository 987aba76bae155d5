/** Times on a page, and the menu of the time zone they are shown in. */
import './time.css'
import { allZones, chooseZone, now, ownZone, zone } from '../app/clock.ts'
import { ago, fullTime, minuteTime, utcTime } from '../text/format.ts'
import { useSignal } from '@preact/signals'
import { useId } from 'preact/hooks'
import { Dialog } from './dialog.tsx'

/** The relative time, with the exact time on hover. */
export function Moment({ iso }: { iso: string }) {
  const ms = Date.parse(iso)
  return (
    <time dateTime={iso} title={`${fullTime(ms)}\n${utcTime(ms)}`}>
      {ago(ms, now())}
    </time>
  )
}

/** The exact time, with the relative time on hover, for evidence such as the audit log. */
export function Instant({ iso }: { iso: string }) {
  const ms = Date.parse(iso)
  const [day, time] = fullTime(ms).split(', ')
  return (
    <time class="instant" dateTime={iso} title={`${ago(ms, now())}\n${utcTime(ms)}`}>
      <span>{day}</span> <span>{time}</span>
    </time>
  )
}

/** The time to the minute, for limits and for what happens later. */
export function Minute({ iso }: { iso: string }) {
  const ms = Date.parse(iso)
  return (
    <time dateTime={iso} title={`${fullTime(ms)}\n${utcTime(ms)}`}>
      {minuteTime(ms)}
    </time>
  )
}

const otherChoice = 'other'

/** The time zone menu: the browser's zone, UTC, or any zone by name. */
export function ZoneChoice() {
  const choosing = useSignal(false)
  const names = [...new Set([ownZone, 'UTC', zone.value])]
  return (
    <span class="zone-choice">
      <select
        aria-label="Time zone"
        title={`Times are shown in ${zone.value}`}
        value={zone.value}
        onChange={(event) => {
          const name = event.currentTarget.value
          event.currentTarget.value = zone.peek()
          if (name === otherChoice) choosing.value = true
          else chooseZone(name)
        }}
      >
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
        <option value={otherChoice}>Other time zone…</option>
      </select>
      {choosing.value && <OtherZone onClose={() => (choosing.value = false)} />}
    </span>
  )
}

function OtherZone({ onClose }: { onClose: () => void }) {
  const listId = useId()
  const zones = allZones()
  const typed = useSignal('')
  const knownZone = zones.find((name) => name.toLowerCase() === typed.value.trim().toLowerCase())
  return (
    <Dialog title="Time zone" onClose={onClose}>
      <form
        class="zone-form"
        onSubmit={(event) => {
          event.preventDefault()
          if (knownZone === undefined) return
          chooseZone(knownZone)
          onClose()
        }}
      >
        <label for={`${listId}-name`}>Time zone name, for example America/New_York</label>
        <input
          id={`${listId}-name`}
          list={listId}
          autocomplete="off"
          spellcheck={false}
          maxLength={60}
          data-first-focus
          value={typed.value}
          onInput={(event) => (typed.value = event.currentTarget.value)}
        />
        <datalist id={listId}>
          {zones.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <p class="muted">
          {typed.value.trim() !== '' && knownZone === undefined
            ? 'Unknown time zone.'
            : 'Applies to times, charts, date fields and saved files in this browser.'}
        </p>
        <div class="dialog-foot">
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="button primary" aria-disabled={knownZone === undefined}>
            Use time zone
          </button>
        </div>
      </form>
    </Dialog>
  )
}
