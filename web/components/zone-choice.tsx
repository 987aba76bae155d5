/** The time zone of everything that is shown, and the way to another: the browser's, UTC, or any by its name. */
import './zone-choice.css'
import { useSignal } from '@preact/signals'
import { useId } from 'preact/hooks'
import { allZones, chooseZone, ownZone, zone } from '../app/zone.ts'
import { Dialog } from './dialog.tsx'

const other = 'other'

export function ZoneChoice() {
  const asking = useSignal(false)
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
          if (name === other) asking.value = true
          else chooseZone(name)
        }}
      >
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
        <option value={other}>Other time zone…</option>
      </select>
      {asking.value && <OtherZone onClose={() => (asking.value = false)} />}
    </span>
  )
}

function OtherZone({ onClose }: { onClose: () => void }) {
  const listId = useId()
  const zones = allZones()
  const typed = useSignal('')
  const known = zones.find((name) => name.toLowerCase() === typed.value.trim().toLowerCase())
  return (
    <Dialog title="Time zone" onClose={onClose}>
      <form
        class="zone-form"
        onSubmit={(event) => {
          event.preventDefault()
          if (known === undefined) return
          chooseZone(known)
          onClose()
        }}
      >
        <label for={`${listId}-name`}>Name of the zone, such as America/New_York</label>
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
          {typed.value.trim() !== '' && known === undefined
            ? 'No zone has this name.'
            : 'Times, charts, date fields and saved files follow it. It is remembered in this browser.'}
        </p>
        <div class="dialog-foot">
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="button primary" aria-disabled={known === undefined}>
            Use this zone
          </button>
        </div>
      </form>
    </Dialog>
  )
}
