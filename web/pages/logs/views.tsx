/** Saved views: named filters that all members of the organization see. */
import { signal, useSignal } from '@preact/signals'
import { useEffect, useId } from 'preact/hooks'
import { Disclosure } from './filter-bar.tsx'
import { Problem, useTask } from '../../components/problem.tsx'
import { Text, visibleText } from '../../components/text.tsx'
import { counted } from '../../text/format.ts'
import { place } from '../../app/router.ts'
import {
  deleteView,
  discardLocalViews,
  importLocalViews,
  loadViews,
  localViews,
  maySaveViews,
  renameView,
  restoreView,
  type SavedView,
  savedViews,
  saveView,
  viewNameCharsMax,
} from '../../api/saved-views.ts'
import { session } from '../../app/session.ts'
import { viewSearch } from './filter.ts'

export function Views() {
  return (
    <Disclosure label="Saved views" id="saved-views">
      <ViewPanel />
    </Disclosure>
  )
}

/** The last deleted view can be restored until another is deleted or the page closes. */
const deleted = signal<SavedView | null>(null)

function ViewPanel() {
  const { busy, problem, run } = useTask()
  const views = savedViews()
  const may = maySaveViews(session.value)
  useEffect(() => void run(loadViews), [])
  return (
    <>
      {problem.value && <Problem error={problem.value} />}
      {views?.length === 0 && (
        <p class="muted">
          {may
            ? 'No saved views yet. Save these filters under a name to share them.'
            : 'No saved views yet. An analyst or admin can save one.'}
        </p>
      )}
      <ul class="view-list" aria-busy={busy.value}>
        {views?.map((view) => (
          <ViewRow key={view.id} view={view} may={may} run={run} />
        ))}
      </ul>
      {deleted.value && (
        <p role="status">
          Deleted <Text value={deleted.value.name} max={40} />.{' '}
          <button
            type="button"
            class="link-button"
            onClick={() => {
              const back = deleted.peek()
              if (back) void run(() => restoreView(back)).then((done) => done && (deleted.value = null))
            }}
          >
            Undo
          </button>
        </p>
      )}
      {may && <LocalViews run={run} />}
      {may && <SaveForm views={views ?? []} run={run} />}
      <p class="muted">
        {may
          ? 'Saved views are visible to all members of the organization.'
          : 'Saved views are shared with the organization.'}
      </p>
    </>
  )
}

type Run = (work: () => Promise<void>) => Promise<boolean>

function ViewRow({ view, may, run }: { view: SavedView; may: boolean; run: Run }) {
  const name = useSignal<string | null>(null) // the new name while it is typed
  const search = viewSearch(view.search)
  const rename = (): void => {
    const trimmed = name.peek()?.trim() ?? ''
    if (trimmed === '' || trimmed === view.name) name.value = null
    else void run(() => renameView(view.id, trimmed)).then((done) => done && (name.value = null))
  }
  const remove = (): void => {
    void run(() => deleteView(view.id)).then((done) => done && (deleted.value = view))
  }
  if (name.value !== null) {
    return (
      <li class="view-form">
        <input
          aria-label={`New name for ${visibleText(view.name)}`}
          maxLength={viewNameCharsMax}
          autocomplete="off"
          value={name.value}
          onInput={(event) => (name.value = event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter') rename()
          }}
        />
        <button type="button" class="button" onClick={rename}>
          Rename
        </button>
      </li>
    )
  }
  return (
    <li>
      <a
        href={`/logs${search}`}
        aria-current={search === viewSearch(place.value.search) ? 'true' : undefined}
      >
        <Text value={view.name} max={40} />
      </a>
      {may && (
        <span class="view-actions">
          <button
            type="button"
            class="button quiet"
            aria-label={`Rename view ${visibleText(view.name)}`}
            title="Rename"
            onClick={() => (name.value = view.name)}
          >
            Rename
          </button>
          <button
            type="button"
            class="button quiet"
            aria-label={`Delete view ${visibleText(view.name)}`}
            title="Delete"
            onClick={remove}
          >
            ×
          </button>
        </span>
      )}
    </li>
  )
}

function SaveForm({ views, run }: { views: SavedView[]; run: Run }) {
  const name = useSignal('')
  const field = useId()
  const trimmed = name.value.trim()
  const replaces = views.some((view) => view.name === trimmed)
  const save = (): void => {
    if (trimmed === '') return
    const search = viewSearch(place.peek().search)
    void run(() => saveView({ name: trimmed, search })).then((done) => done && (name.value = ''))
  }
  return (
    <>
      <label for={field}>Save these filters as</label>
      <div class="view-form">
        <input
          id={field}
          maxLength={viewNameCharsMax}
          autocomplete="off"
          value={name.value}
          onInput={(event) => (name.value = event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter') save()
          }}
        />
        <button type="button" class="button" onClick={save}>
          {replaces ? 'Replace view' : 'Save view'}
        </button>
      </div>
    </>
  )
}

/** Earlier versions stored views in the browser. They are imported once, or discarded. */
function LocalViews({ run }: { run: Run }) {
  const local = useSignal(localViews())
  if (local.value.length === 0) return null
  const again = (): void => void (local.value = localViews())
  return (
    <div class="local-views">
      <p>
        {counted(local.value.length, 'view')} from an earlier version{' '}
        {local.value.length === 1 ? 'is' : 'are'} stored only in this browser.
      </p>
      <button
        type="button"
        class="button"
        onClick={() => void run(() => importLocalViews(viewSearch)).then(again)}
      >
        Share with the organization
      </button>{' '}
      <button
        type="button"
        class="button quiet"
        onClick={() => {
          discardLocalViews()
          again()
        }}
      >
        Discard
      </button>
    </div>
  )
}
