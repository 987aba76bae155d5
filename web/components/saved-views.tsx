/** Saved views of a page: named filters or queries that all members of the organization see. */
import './saved-views.css'
import { signal, useSignal } from '@preact/signals'
import { useEffect, useId } from 'preact/hooks'
import { Disclosure } from './disclosure.tsx'
import { Problem, useTask } from './problem.tsx'
import { Text, visibleText } from './text.tsx'
import { counted } from '../text/format.ts'
import { place } from '../app/router.ts'
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
  viewPath,
} from '../app/saved-views.ts'
import { session } from '../app/session.ts'

interface SavedViewsProps {
  what: string // what a view saves: "filters"
  path: string // of the page
  /** The part of the page's query string that a view saves. */
  searchOf: (search: string) => string
  hasLocal?: boolean // earlier versions stored views of this page in the browser
}

export function SavedViews(props: SavedViewsProps) {
  return (
    <Disclosure label="Saved views" id="saved-views">
      <ViewPanel {...props} />
    </Disclosure>
  )
}

/** The last deleted view can be restored until another is deleted or the page closes. */
const deleted = signal<SavedView | null>(null)

function ViewPanel({ what: noun, path, searchOf, hasLocal }: SavedViewsProps) {
  // Of its own: a view that is saved while the list loads is not dropped.
  const loading = useTask()
  const { busy, problem, run } = useTask()
  const allViews = savedViews()
  const error = problem.value ?? loading.problem.value
  const views = allViews?.filter((view) => viewPath(view) === path)
  const may = maySaveViews(session.value)
  useEffect(() => void loading.run(loadViews), [])
  return (
    <>
      {error && <Problem error={error} />}
      {views?.length === 0 && (
        <p class="muted">
          {may
            ? `No saved views yet. Save these ${noun} under a name to share them.`
            : 'No saved views yet. An analyst or admin can save one.'}
        </p>
      )}
      <ul class="view-list" aria-busy={busy.value || loading.busy.value}>
        {views?.map((view) => (
          <ViewRow key={view.id} view={view} may={may} run={run} path={path} searchOf={searchOf} />
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
              if (back) void run(() => restoreView(back)).then((isDone) => isDone && (deleted.value = null))
            }}
          >
            Undo
          </button>
        </p>
      )}
      {may && hasLocal && <LocalViews run={run} searchOf={searchOf} />}
      {may && <SaveForm views={allViews ?? []} what={noun} run={run} searchOf={searchOf} />}
      <p class="muted">
        {may
          ? 'Saved views are visible to all members of the organization.'
          : 'Saved views are shared with the organization.'}
      </p>
    </>
  )
}

type Run = (work: () => Promise<void>) => Promise<boolean>

interface ViewRowProps extends Pick<SavedViewsProps, 'path' | 'searchOf'> {
  view: SavedView
  may: boolean
  run: Run
}

function ViewRow({ view, may, run, path, searchOf }: ViewRowProps) {
  const name = useSignal<string | null>(null) // the new name while it is typed
  const search = searchOf(view.search)
  const rename = (): void => {
    const trimmed = name.peek()?.trim() ?? ''
    if (trimmed === '' || trimmed === view.name) name.value = null
    else void run(() => renameView(view.id, trimmed)).then((isDone) => isDone && (name.value = null))
  }
  const remove = (): void => {
    void run(() => deleteView(view.id)).then((isDone) => isDone && (deleted.value = view))
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
      <a href={path + search} aria-current={search === searchOf(place.value.search) ? 'true' : undefined}>
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

interface SaveFormProps extends Pick<SavedViewsProps, 'what' | 'searchOf'> {
  views: SavedView[] // of all pages: a name belongs to one view
  run: Run
}

function SaveForm({ views, run, what: noun, searchOf }: SaveFormProps) {
  const name = useSignal('')
  const field = useId()
  const trimmed = name.value.trim()
  const replaces = views.some((view) => view.name === trimmed)
  const save = (): void => {
    if (trimmed === '') return
    const search = searchOf(place.peek().search)
    void run(() => saveView({ name: trimmed, search })).then((isDone) => isDone && (name.value = ''))
  }
  return (
    <>
      <label for={field}>Save these {noun} as</label>
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
function LocalViews({ run, searchOf }: { run: Run; searchOf: SavedViewsProps['searchOf'] }) {
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
        onClick={() => void run(() => importLocalViews(searchOf)).then(again)}
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
