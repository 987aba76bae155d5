/** The dialog that creates a share link of a page or a view, says what it shows, and offers it to copy. */
import './share.css'
import type { ComponentChild } from 'preact'
import { useSignal } from '@preact/signals'
import { shareLinksApi, type NewShareLink } from '../api/share-links.ts'
import { ownAddress } from '../app/router.ts'
import { mayManage, session } from '../app/session.ts'
import { Choice, Field, FormDialog, SecretDialog, textOf } from '../components/dialog.tsx'
import { counted } from '../text/format.ts'
import { rangeWords } from './range.ts'
import type { PeriodView } from '../api/api.ts'

const panels = [
  { name: 'headlines', label: 'Totals' },
  { name: 'timeline', label: 'Events over time' },
  { name: 'types', label: 'Types' },
  { name: 'outcomes', label: 'Outcomes' },
  { name: 'vendors', label: 'Vendors' },
  { name: 'classes', label: 'Agent classes' },
  { name: 'tools', label: 'Tools' },
  { name: 'pages', label: 'Pages' },
  { name: 'protocols', label: 'Protocols' },
  { name: 'rules', label: 'Rules' },
] as const

const overviewPanels = [
  { name: 'headlines', label: 'Totals' },
  { name: 'timeline', label: 'Events over time' },
  { name: 'changes', label: 'What changed in the last 24 hours' },
] as const

const ends = [
  { value: '1', text: '1 day' },
  { value: '7', text: '7 days' },
  { value: '30', text: '30 days' },
  { value: '90', text: '90 days' },
  { value: '365', text: '1 year' },
] as const

interface ShareProps {
  page: NewShareLink['page']
  /** The query string that the link fixes. */
  search: () => string
  /** Filters and range in words. */
  about: string
}

/** A range up to now stays one for the link. */
export function sharedRange(period: PeriodView | null): string {
  if (period === null) return ''
  const filters = period.filters.length + period.siteIds.length
  const chosen = filters === 0 ? 'all events' : `the events of ${counted(filters, 'filter')}`
  return `It shows ${chosen} ${rangeWords(period)}, up to date each time it is opened.`
}

/** Opens the dialog; nothing for members who may not share. */
export function ShareButton(props: ShareProps) {
  const isOpen = useSignal(false)
  if (!mayManage(session.value)) return null
  return (
    <>
      <button type="button" class="button" onClick={() => (isOpen.value = true)}>
        Share
      </button>
      {isOpen.value && <ShareDialog {...props} onClose={() => (isOpen.value = false)} />}
    </>
  )
}

function ShareDialog({ page, search, about: description, onClose }: ShareProps & { onClose: () => void }) {
  const created = useSignal<string | null>(null)
  if (created.value !== null) return <CreatedDialog url={created.value} onClose={onClose} />
  const submit = async (form: FormData): Promise<void> => {
    const pagePanels = page === 'overview' ? overviewPanels : panels
    const chosen =
      page === 'analytics' || page === 'overview'
        ? { panels: pagePanels.map(({ name }) => name).filter((name) => form.has(name)) }
        : { events: form.has('events'), identities: form.has('identities') }
    const { token } = await shareLinksApi.create({
      page,
      search: search(),
      name: textOf(form, 'name'),
      days: Number(textOf(form, 'days')),
      ...chosen,
      frameOrigins: originsOf(textOf(form, 'origins')),
    })
    created.value = `${ownAddress()}/share/${token}`
  }
  return (
    <FormDialog
      key="form"
      title="Share by link"
      action="Create link"
      onSubmit={submit}
      onClose={() => created.value === null && onClose()} // otherwise the link is shown
    >
      <p>
        Anybody with the link sees this page without an account. {description} Nobody can change its filters
        or its range.
      </p>
      <Field name="name" label="Title of the page" required autofocus maxLength={80} />
      {choices[page]}
      <Choice name="days" label="Ends after" options={ends} value="7" />
      <p class="hint">It also ends when you leave the organization, or are no longer owner or admin.</p>
      <Field
        name="origins"
        label="Sites that may show it in a frame"
        hint="Addresses such as https://wiki.example.com, separated by commas. Empty: none."
      />
    </FormDialog>
  )
}

function PanelChoice() {
  return (
    <fieldset class="share-choice">
      <legend>Shows</legend>
      {panels.map(({ name, label }) => (
        <label key={name}>
          <input type="checkbox" name={name} defaultChecked /> {label}
        </label>
      ))}
      <p class="hint">It never shows subjects, session ids or events.</p>
    </fieldset>
  )
}

function EventChoice() {
  return (
    <fieldset class="share-choice">
      <legend>Shows</legend>
      <p class="hint">The number of events and their outcomes over time.</p>
      <label>
        <input type="checkbox" name="events" /> The newest 50 events: time, type, outcome, site, agent, tool
      </label>
      <label>
        <input type="checkbox" name="identities" /> Their subjects and session ids, and filters by them
      </label>
    </fieldset>
  )
}

function OverviewChoice() {
  return (
    <fieldset class="share-choice">
      <legend>Shows</legend>
      {overviewPanels.map(({ name, label }) => (
        <label key={name}>
          <input type="checkbox" name={name} defaultChecked={name !== 'changes'} /> {label}
        </label>
      ))}
      <p class="hint">
        Changes name operators, rules and tools. It never shows subjects, session ids or events.
      </p>
    </fieldset>
  )
}

function ExploreChoice() {
  return (
    <fieldset class="share-choice">
      <legend>Shows</legend>
      <p class="hint">The measure as a chart and a table of at most 50 values.</p>
      <label>
        <input type="checkbox" name="identities" /> Subjects and session ids, as field and in filters
      </label>
    </fieldset>
  )
}

const choices: { readonly [page in NewShareLink['page']]: ComponentChild } = {
  analytics: <PanelChoice />,
  explore: <ExploreChoice />,
  overview: <OverviewChoice />,
  view: <EventChoice />,
}

const copyNotice = (
  <>
    <strong>Copy it now.</strong> Only a hash is stored, so it cannot be shown again. Settings lists links and
    revokes them.
  </>
)

function CreatedDialog({ url, onClose }: { url: string; onClose: () => void }) {
  return (
    <SecretDialog
      title="Your new link"
      about={copyNotice}
      label="Share link"
      secret={url}
      copyLabel="Copy link"
      onClose={onClose}
    >
      <p>
        <a href={url} target="_blank" rel="noreferrer">
          Preview
        </a>
      </p>
    </SecretDialog>
  )
}

function originsOf(text: string): string[] {
  return text
    .split(/[\s,]+/)
    .map((origin) => origin.replace(/\/$/, ''))
    .filter((origin) => origin !== '')
}
