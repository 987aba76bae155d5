/** Views: filters kept under a name in this browser, each one click away. */
import { signal, useSignal } from '@preact/signals'
import { useId } from 'preact/hooks'
import { Disclosure } from '../../components/disclosure.tsx'
import { Text } from '../../components/text.tsx'
import { remember, remembered } from '../../remembered.ts'
import { place } from '../../router.ts'
import { viewSearch } from './filter.ts'
import { addView, readViews, type View } from './saved-views.ts'

const kept = signal<View[] | null>(null)

function views(): View[] {
  kept.value ??= readViews(remembered('logs.views'))
  return kept.value
}

function keep(list: View[]): void {
  kept.value = list
  remember('logs.views', JSON.stringify(list))
}

export function Views() {
  return (
    <Disclosure label="Views" id="saved-views">
      <ViewList />
    </Disclosure>
  )
}

function ViewList() {
  const name = useSignal('')
  const field = useId()
  const list = views()
  const search = viewSearch(place.value.search)
  const save = (): void => {
    if (name.value.trim() === '') return
    keep(addView(list, { name: name.value.trim(), search }))
    name.value = ''
  }
  return (
    <>
      {list.length === 0 && <p class="muted">No view is kept yet.</p>}
      <ul class="view-list">
        {list.map((view) => (
          <li key={view.name}>
            <a href={`/logs${view.search}`} aria-current={view.search === search ? 'true' : undefined}>
              <Text value={view.name} max={40} />
            </a>
            <button
              type="button"
              class="button quiet"
              aria-label={`Forget view ${view.name}`}
              onClick={() => keep(list.filter((other) => other !== view))}
            >
              ×
            </button>
          </li>
        ))}
      </ul>
      <label for={field}>Keep these filters as</label>
      <div class="view-form">
        <input
          id={field}
          maxLength={60}
          autocomplete="off"
          value={name.value}
          onInput={(event) => (name.value = event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter') save()
          }}
        />
        <button type="button" class="button" onClick={save}>
          Save view
        </button>
      </div>
      <p class="muted">Views are kept in this browser. To share one, copy the address.</p>
    </>
  )
}
