/** A filter by any other field and an exact value, with the values of the shown rows as suggestions. */
import { type ReadonlySignal, useSignal } from '@preact/signals'
import { useId } from 'preact/hooks'
import { navigate, place, withQuery } from '../../app/router.ts'
import type { Entry } from './entries.ts'
import { fieldNames, seenValues } from './filter.ts'

/** Adds a value of a field to the URL and closes the open event, which may no longer match. */
function addFilter(name: string, value: string): void {
  const here = place.peek()
  const values = new URLSearchParams(here.search).getAll(name)
  navigate(here.path + withQuery(here.search, { [name]: [...new Set([...values, value])], event: [] }))
}

export function MoreFilters({ entries }: { entries: ReadonlySignal<Entry[]> }) {
  const member = useSignal('vendor')
  const typed = useSignal('')
  const list = useId()
  // The rows when the field is selected, because suggestions must not change while they are read.
  const seen = seenValues(
    entries.peek().map((entry) => entry.event),
    member.value,
  )
  const add = (): void => {
    if (typed.value === '') return
    addFilter(member.value, typed.value)
    typed.value = ''
  }
  return (
    <fieldset class="more-filters">
      <legend>Other field</legend>
      <select
        aria-label="Field"
        value={member.value}
        onChange={(event) => {
          member.value = event.currentTarget.value
          typed.value = ''
        }}
      >
        {Object.entries(fieldNames).map(([name, word]) => (
          <option key={name} value={name}>
            {word}
          </option>
        ))}
      </select>
      <input
        aria-label="Value"
        placeholder="Exact value"
        autocomplete="off"
        spellcheck={false}
        list={list}
        value={typed.value}
        onInput={(event) => (typed.value = event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter') add()
        }}
      />
      <datalist id={list}>
        {seen.map((value) => (
          <option key={value} value={value} />
        ))}
      </datalist>
      <button type="button" class="button" onClick={add}>
        Add
      </button>
    </fieldset>
  )
}
