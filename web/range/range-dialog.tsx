/** Selects a range by dates, optionally with times, in the chosen zone. */
import { useSignal } from '@preact/signals'
import { useId } from 'preact/hooks'
import { now } from '../app/clock.ts'
import { Dialog } from '../components/dialog.tsx'
import { clockTime } from '../text/format.ts'
import { dayOf, dayStart, localMoment, zone } from '../app/zone.ts'

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
  const at = (day: string, time: string, later: number) =>
    time === '' ? dayStart(day, later, timeZone) : localMoment(`${day}T${time}`, timeZone)
  const sinceMs = at(fromDay, fromTime, 0)
  const untilMs = at(toDay, toTime, 1)
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
          {zone.value}. Leave the times empty for whole days. Counts are stored for 400 days.
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
