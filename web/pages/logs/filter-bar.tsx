/** The active filters as chips, and the panel that adds filters by type, outcome or any other field. */
import { useSignal, type ReadonlySignal } from '@preact/signals'
import { Disclosure } from '../../components/disclosure.tsx'
import { FilterValue } from '../../components/key-label.tsx'
import { Text } from '../../components/text.tsx'
import { count, shortTime } from '../../text/format.ts'
import { navigate, place, withQuery } from '../../app/router.ts'
import { overview } from '../../app/session.ts'
import { fieldNames, isTypeFilter, outcomeChoices, seenValues, typeChoices, type Choice } from './filter.ts'
import { useId } from 'preact/hooks'
import type { EventFilter } from '../../api/api.ts'
import type { Entry } from './entries.ts'

function setFilter(field: string, values: string[]): void {
  const currentPlace = place.peek()
  navigate(currentPlace.path + withQuery(currentPlace.search, { [field]: values, event: [] }))
}

function toggled(values: string[], value: string): string[] {
  return values.includes(value) ? values.filter((item) => item !== value) : [...values, value]
}

const chipNames: { readonly [name: string]: string } = { ...fieldNames, q: 'text' }

/** Times are shown in the chosen zone, other values unchanged. */
function chipValue(field: string, value: string): string {
  const ms = field === 'since' || field === 'until' ? Date.parse(value) : Number.NaN
  return Number.isNaN(ms) ? value : shortTime(ms)
}

interface FilterBarProps {
  filter: EventFilter
  outcomesSeen: Set<string>
  entries: ReadonlySignal<Entry[]>
}

export function FilterBar(props: FilterBarProps) {
  const { types, outcomes } = props.filter
  const conditions = props.filter.where ?? []
  const chips: { field: string; value: string; values: string[] }[] = [
    ...types.map((value) => ({ field: 'type', value, values: types })),
    ...outcomes.map((value) => ({ field: 'outcome', value, values: outcomes })),
    ...conditions.map(({ name, value }) => {
      const values = conditions
        .filter((condition) => condition.name === name)
        .map((condition) => condition.value)
      return { field: name, value, values }
    }),
  ]
  return (
    <div class="filter-bar" role="group" aria-label="Filters">
      {chips.map(({ field, value, values }) => (
        <button
          type="button"
          key={`${field}:${value}`}
          class="button filter-chip"
          onClick={() => setFilter(field, toggled(values, value))}
        >
          <span class="visually-hidden">Remove filter </span>
          {chipNames[field] ?? field}{' '}
          <b>
            <FilterValue name={field} value={chipValue(field, value)} />
          </b>
          <span aria-hidden="true">×</span>
        </button>
      ))}
      <Disclosure label="Add filter" id="add-filter">
        <MoreFilters entries={props.entries} />
        <TypeChoices chosen={types} />
        <ChoiceList
          legend="Outcome"
          choices={outcomeChoices(props.outcomesSeen, outcomes)}
          chosen={outcomes}
          onToggle={(value) => setFilter('outcome', toggled(outcomes, value))}
        />
      </Disclosure>
      {chips.length > 0 && (
        <a class="button quiet" href={place.value.path}>
          Clear
        </a>
      )}
    </div>
  )
}

function TypeChoices(props: { chosen: string[] }) {
  const typed = useSignal('')
  const choices = typeChoices(overview.value?.byType ?? {}, props.chosen)
  const type = typed.value.trim()
  const shown = choices.filter((choice) => choice.value.includes(type))
  const toggle = (value: string): void => setFilter('type', toggled(props.chosen, value))
  return (
    <>
      <label class="visually-hidden" for="type-filter">
        Type
      </label>
      <input
        id="type-filter"
        class="choice-search"
        placeholder="Type, such as authz.*"
        autocomplete="off"
        spellcheck={false}
        value={typed.value}
        onInput={(event) => (typed.value = event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || !isTypeFilter(type)) return
          typed.value = ''
          toggle(type)
        }}
      />
      {shown.length > 0 && (
        <ChoiceList legend="Type" choices={shown} chosen={props.chosen} onToggle={toggle} />
      )}
      {shown.length === 0 && (
        <p class="muted">
          {isTypeFilter(type)
            ? 'No events of this type yet. Press Enter to filter by it anyway.'
            : 'A type is lowercase words separated by dots.'}
        </p>
      )}
    </>
  )
}

interface ChoiceListProps {
  legend: string
  choices: Choice[]
  chosen: string[]
  onToggle: (value: string) => void
}

function ChoiceList(props: ChoiceListProps) {
  return (
    <fieldset class="choices">
      <legend>{props.legend}</legend>
      {props.choices.map(({ value, count: events }) => (
        <label key={value}>
          <input
            type="checkbox"
            checked={props.chosen.includes(value)}
            onChange={() => props.onToggle(value)}
          />
          <Text value={value} max={36} />
          {events !== null && <small aria-hidden="true">{count(events)}</small>}
        </label>
      ))}
    </fieldset>
  )
}

/** Adds a value of a field to the URL and closes the open event, which may no longer match. */
function addFilter(name: string, value: string): void {
  const currentPlace = place.peek()
  const values = new URLSearchParams(currentPlace.search).getAll(name)
  navigate(
    currentPlace.path +
      withQuery(currentPlace.search, { [name]: [...new Set([...values, value])], event: [] }),
  )
}

/** A filter by any other field and an exact value, with the values of the shown rows as suggestions. */
function MoreFilters({ entries }: { entries: ReadonlySignal<Entry[]> }) {
  const field = useSignal('vendor')
  const typed = useSignal('')
  const list = useId()
  // The rows when the field is selected, because suggestions must not change while they are read.
  const suggestions = seenValues(entries.peek(), field.value)
  const add = (): void => {
    if (typed.value === '') return
    addFilter(field.value, typed.value)
    typed.value = ''
  }
  return (
    <fieldset class="more-filters">
      <legend>Other field</legend>
      <select
        aria-label="Field"
        value={field.value}
        onChange={(event) => {
          field.value = event.currentTarget.value
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
        {suggestions.map((value) => (
          <option key={value} value={value} />
        ))}
      </datalist>
      <button type="button" class="button" onClick={add}>
        Add
      </button>
    </fieldset>
  )
}
