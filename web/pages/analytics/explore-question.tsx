/** The controls of Explore: measure, field, number of values, view and filters. Each change goes into the URL. */
import { useEffect, useId, useState } from 'preact/hooks'
import { api } from '../../api/api.ts'
import { navigate, place, query, withQuery } from '../../app/router.ts'
import { SavedViews } from '../../components/saved-views.tsx'
import { Text, visibleText } from '../../components/text.tsx'
import { filterHref, filterable, filtersOf } from '../../range/filters.tsx'
import {
  explorationOf,
  explorePath,
  fieldWords,
  measureNames,
  measureWords,
  metadataPaths,
  metadataPrefix,
  rowChoices,
  shownView,
  type View,
  viewSearch,
  views,
} from './explore-model.ts'

/** Each change adds a history entry. */
function go(changes: { [name: string]: string[] }): void {
  const currentPlace = place.peek()
  navigate(currentPlace.path + withQuery(currentPlace.search, changes))
}

/** The controls in the order of the sentence: measure by field, top n, as a view, with filters. */
export function Question({ onRefresh }: { onRefresh: () => void }) {
  const { measure, by: dimension, rows } = explorationOf(query.value)
  return (
    <section class="panel explore-question" aria-label="Query">
      <div class="explore-line">
        <label>
          <span>Measure</span>
          <select
            aria-label="Measure"
            value={measure}
            onChange={(event) => go({ measure: [event.currentTarget.value] })}
          >
            {measureNames.map((name) => (
              <option key={name} value={name} title={measureWords[name].about}>
                {measureWords[name].name}
              </option>
            ))}
          </select>
        </label>
        <FieldChoice by={dimension} />
        <label>
          <span>Top</span>
          <select
            aria-label="Top"
            value={`${rows}`}
            onChange={(event) => go({ rows: [event.currentTarget.value] })}
          >
            {rowChoices.map((choice) => (
              <option key={choice} value={`${choice}`}>
                {choice}
              </option>
            ))}
          </select>
        </label>
        <ViewChoice />
        <button type="button" class="button explore-refresh" onClick={onRefresh}>
          Refresh
        </button>
        <SavedViews what="settings" path={explorePath} searchOf={viewSearch} />
      </div>
      <Filters />
    </section>
  )
}

const metadataChoice = 'metadata'

function FieldChoice({ by: dimension }: { by: string }) {
  const isMember = dimension.startsWith(metadataPrefix)
  const [isTyping, setTyping] = useState(false)
  const shown = isMember || isTyping
  return (
    <>
      <label>
        <span>By</span>
        <select
          aria-label="By"
          value={shown ? metadataChoice : dimension}
          onChange={(event) => {
            const chosen = event.currentTarget.value
            setTyping(chosen === metadataChoice)
            if (chosen !== metadataChoice) go({ by: [chosen] })
          }}
        >
          <option value="">All together</option>
          <FieldOptions />
          <option value={metadataChoice}>Metadata…</option>
        </select>
      </label>
      {shown && (
        <MemberField path={isMember ? dimension.slice(metadataPrefix.length) : ''} isNew={!isMember} />
      )}
    </>
  )
}

const FieldOptions = () => (
  <>
    {Object.entries(fieldWords).map(([name, word]) => (
      <option key={name} value={name}>
        {word}
      </option>
    ))}
  </>
)

/** Suggestions are the members of the newest events. */
function useMetadataPaths(): string[] {
  const [paths, setPaths] = useState<string[]>([])
  useEffect(() => {
    const stop = new AbortController()
    api.events({ types: [], outcomes: [] }, { limit: 200 }, stop.signal).then(
      ({ events }) => setPaths(metadataPaths(events.map(({ event }) => event))),
      () => {}, // any path can be typed
    )
    return () => stop.abort()
  }, [])
  return paths
}

const pathCharsMax = 200

function MemberField({ path: chosen, isNew }: { path: string; isNew: boolean }) {
  const paths = useMetadataPaths()
  const list = useId()
  const apply = (text: string): void => {
    const trimmed = text.trim()
    if (trimmed !== '' && trimmed !== chosen) go({ by: [metadataPrefix + trimmed] })
  }
  return (
    <label>
      <span>Path in metadata</span>
      <input
        class="mono"
        key={chosen}
        list={list}
        defaultValue={chosen}
        placeholder="cart.currency"
        maxLength={pathCharsMax}
        autocomplete="off"
        spellcheck={false}
        // The choice that opened this field is the keyboard's last step.
        ref={(element) => void (isNew && element?.focus())}
        onChange={(event) => apply(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter') apply(event.currentTarget.value)
        }}
      />
      <datalist id={list}>
        {paths.map((path) => (
          <option key={path} value={path} />
        ))}
      </datalist>
    </label>
  )
}

const viewLabels: { readonly [view in View]: string } = { bars: 'Bars', lines: 'Lines', table: 'Table' }

function ViewChoice() {
  const exploration = explorationOf(query.value)
  const shown = shownView(exploration)
  const canStack = measureWords[exploration.measure].isSum === true
  const group = useId()
  return (
    <fieldset class="divide">
      <legend class="visually-hidden">Show as</legend>
      {views
        .filter((view) => view !== 'bars' || canStack)
        .map((view) => (
          <label key={view}>
            <input
              type="radio"
              name={group}
              class="visually-hidden"
              checked={view === shown}
              onChange={() => go({ view: [view] })}
            />
            {viewLabels[view]}
          </label>
        ))}
    </fieldset>
  )
}

/** The filter by a text in any value, of which there is one. */
const textChoice = 'text'
const textWord = 'text'
const textCharsMax = 200

const wordOf = (name: string): string => filterable[name]?.word ?? fieldWords[name] ?? name

/** A chip that removes its filter. */
function Chip({ name, value, href }: { name: string; value: string; href: string }) {
  return (
    <a class="button filter-chip" href={href}>
      <span class="visually-hidden">Remove filter </span>
      {visibleText(name).slice(0, 60)} <b>{value === '' ? 'none' : <Text value={value} max={32} />}</b>
      <span aria-hidden="true">×</span>
    </a>
  )
}

function Filters() {
  const filters = filtersOf(query.value)
  const text = query.value.get('q') ?? ''
  const hrefWithout = (names: string[]): string =>
    place.value.path + withQuery(place.value.search, Object.fromEntries(names.map((name) => [name, []])))
  return (
    <div class="count-filters" role="group" aria-label="Filters">
      {filters.map((filter) => (
        <Chip
          key={`${filter.name}:${filter.value}`}
          name={wordOf(filter.name)}
          value={filter.value}
          href={filterHref(filter)}
        />
      ))}
      {text !== '' && <Chip name={textWord} value={text} href={hrefWithout(['q'])} />}
      <AddFilter />
      {(filters.length > 0 || text !== '') && (
        <a class="button quiet" href={hrefWithout(['filter', 'q'])}>
          Clear filters
        </a>
      )}
    </div>
  )
}

function AddFilter() {
  const [field, setField] = useState('type')
  const [member, setMember] = useState('')
  const [value, setValue] = useState('')
  const isMember = field === metadataChoice
  const isText = field === textChoice
  const name = isMember ? metadataPrefix + member.trim() : field
  const add = (): void => {
    if (isText) {
      const text = value.trim()
      setValue('')
      if (text !== '') go({ q: [text] })
      return
    }
    const isNamed = !isMember || (member.trim() !== '' && !member.includes(':'))
    const filterText = `${name}:${value}`
    if (!isNamed || query.peek().getAll('filter').includes(filterText)) return
    setValue('')
    go({ filter: [...query.peek().getAll('filter'), filterText] })
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'Enter') add()
  }
  return (
    <span class="explore-filter">
      <select aria-label="Filter by" value={field} onChange={(event) => setField(event.currentTarget.value)}>
        <FieldOptions />
        <option value={metadataChoice}>Metadata…</option>
        <option value={textChoice}>Text…</option>
      </select>
      {isMember && (
        <input
          class="mono"
          aria-label="Filter by path in metadata"
          placeholder="cart.currency"
          maxLength={pathCharsMax}
          autocomplete="off"
          spellcheck={false}
          value={member}
          onInput={(event) => setMember(event.currentTarget.value)}
          onKeyDown={onKeyDown}
        />
      )}
      <input
        aria-label="Filter value"
        placeholder={isText ? 'Text in events' : 'Exact value, empty for none'}
        autocomplete="off"
        spellcheck={false}
        maxLength={isText ? textCharsMax : 1_800}
        value={value}
        onInput={(event) => setValue(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      <button type="button" class="button" onClick={add}>
        Add filter
      </button>
    </span>
  )
}
