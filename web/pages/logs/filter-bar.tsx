/** The active filters as chips, and the panel that adds more. */
import { type ReadonlySignal, useSignal } from '@preact/signals'
import type { EventFilter } from '../../api/api.ts'
import { Disclosure } from './disclosure.tsx'
import { Text } from '../../components/text.tsx'
import { count, shortTime } from '../../text/format.ts'
import { navigate, place, withQuery } from '../../app/router.ts'
import { overview } from '../../app/session.ts'
import type { Entry } from './entries.ts'
import { type Choice, isTypeFilter, fieldNames, outcomeChoices, typeChoices } from './filter.ts'
import { MoreFilters } from './more-filters.tsx'

function setFilter(member: string, values: string[]): void {
  const here = place.peek()
  navigate(here.path + withQuery(here.search, { [member]: values, event: [] }))
}

function toggled(values: string[], value: string): string[] {
  return values.includes(value) ? values.filter((other) => other !== value) : [...values, value]
}

const chipNames: { readonly [name: string]: string } = { ...fieldNames, q: 'text' }

/** Times are shown in the chosen zone, other values unchanged. */
function chipValue(member: string, value: string): string {
  const ms = member === 'since' || member === 'until' ? Date.parse(value) : Number.NaN
  return Number.isNaN(ms) ? value : shortTime(ms)
}

interface FilterBarProps {
  filter: EventFilter
  outcomesSeen: Set<string>
  entries: ReadonlySignal<Entry[]>
}

export function FilterBar(props: FilterBarProps) {
  const { types, outcomes } = props.filter
  const where = props.filter.where ?? []
  const chips: { member: string; value: string; values: string[] }[] = [
    ...types.map((value) => ({ member: 'type', value, values: types })),
    ...outcomes.map((value) => ({ member: 'outcome', value, values: outcomes })),
    ...where.map(({ name, value }) => {
      const values = where.filter((other) => other.name === name).map((other) => other.value)
      return { member: name, value, values }
    }),
  ]
  return (
    <div class="filter-bar" role="group" aria-label="Filters">
      {chips.map(({ member, value, values }) => (
        <button
          type="button"
          key={`${member}:${value}`}
          class="button filter-chip"
          onClick={() => setFilter(member, toggled(values, value))}
        >
          <span class="visually-hidden">Remove filter </span>
          {chipNames[member] ?? member}{' '}
          <b>
            <Text value={chipValue(member, value)} max={32} />
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
  const all = typeChoices(overview.value?.byType ?? {}, props.chosen)
  const wanted = typed.value.trim()
  const shown = all.filter((choice) => choice.value.includes(wanted))
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
          if (event.key !== 'Enter' || !isTypeFilter(wanted)) return
          typed.value = ''
          toggle(wanted)
        }}
      />
      {shown.length > 0 && (
        <ChoiceList legend="Type" choices={shown} chosen={props.chosen} onToggle={toggle} />
      )}
      {shown.length === 0 && (
        <p class="muted">
          {isTypeFilter(wanted)
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
