/** Settings, Share links: what each link shows, until when, how often it was opened, and revoking it. */
import { useSignal } from '@preact/signals'
import { shareLinksApi, type ShareLink } from '../../../api/share-links.ts'
import { mayManage, session } from '../../../app/session.ts'
import { FormDialog } from '../../../components/dialog.tsx'
import { Problem } from '../../../components/problem.tsx'
import { RecordTable, RowButton } from '../../../components/record-table.tsx'
import { Text } from '../../../components/text.tsx'
import { Minute, Moment } from '../../../components/time.tsx'
import { useRecords } from '../../../query/use-query.ts'
import { count, counted } from '../../../text/format.ts'
import { RoleNote } from '../../../components/role-note.tsx'

export function ShareLinks() {
  const allowed = mayManage(session.value)
  return (
    <section class="settings-section">
      <p class="about">
        A share link shows a page to anybody who has it, without an account. Create one with Share on
        Overview, Analytics, Explore or Logs.
      </p>
      {allowed ? <List /> : <RoleNote text="Only owners and admins can share pages." />}
    </section>
  )
}

function List() {
  const { data: links, error, refetch } = useRecords({ key: 'share-links', fetch: shareLinksApi.list })
  const revoking = useSignal<ShareLink | null>(null)
  if (error.value) return <Problem error={error.value} onRetry={refetch} />
  if (!links.value) return null
  if (links.value.length === 0)
    return <p class="muted">No share links yet. Open one of these pages and select Share.</p>
  return (
    <>
      <RecordTable
        label="Share links"
        rows={links.value}
        keyOf={({ id }) => id}
        isEnded={({ state }) => state !== 'open'}
        columns={[
          { name: 'Title', cell: ({ name }) => <Text value={name} max={40} /> },
          { name: 'Shows', cell: (link) => <Shows link={link} /> },
          { name: 'State', cell: State },
          { name: 'Opened', number: true, cell: Opened },
          { name: 'Ends', cell: ({ expiresAt }) => <Minute iso={expiresAt} /> },
        ]}
        actions={(link) =>
          link.state === 'open' && (
            <RowButton label="Revoke" of={link.name} onClick={() => (revoking.value = link)} />
          )
        }
      />
      {revoking.value && (
        <RevokeDialog link={revoking.value} onDone={refetch} onClose={() => (revoking.value = null)} />
      )}
    </>
  )
}

const pageNames: { readonly [page in ShareLink['page']]: string } = {
  analytics: 'Analytics',
  explore: 'Explore',
  overview: 'Overview',
  view: 'Logs',
}

function Shows({ link }: { link: ShareLink }) {
  const { page, panels, events, identities, search, frameOrigins } = link
  const parts: string[] = [pageNames[page]]
  if (panels.length > 0) parts.push(counted(panels.length, 'panel'))
  if (events) parts.push(identities ? 'events with subjects and sessions' : 'events')
  else if (identities) parts.push('subjects and sessions')
  return (
    <>
      {parts.join(', ')}
      <br />
      <span class="muted">
        <Text value={page === 'overview' ? 'last 7 days' : filterWords(search)} max={60} />
      </span>
      {frameOrigins.map((origin) => (
        <>
          <br />
          in frames of <Text value={origin} max={40} />
        </>
      ))}
    </>
  )
}

/** The query string of the page: range, sites and filters. */
function filterWords(search: string): string {
  const parts = [...new URLSearchParams(search)].map(([name, value]) =>
    name === 'filter' ? value : `${name}:${value}`,
  )
  return parts.length === 0 ? 'all events' : parts.join(', ')
}

function Opened({ opened, lastOpenedAt }: ShareLink) {
  return (
    <>
      {count(opened)}
      {lastOpenedAt !== null && (
        <>
          <br />
          <Moment iso={lastOpenedAt} />
        </>
      )}
    </>
  )
}

function State({ state }: ShareLink) {
  return <span class={`chip ${state === 'open' ? 'allow' : 'plain'}`}>{state}</span>
}

function RevokeDialog({
  link,
  onDone,
  onClose,
}: {
  link: ShareLink
  onDone: () => void
  onClose: () => void
}) {
  const submit = async (): Promise<void> => {
    await shareLinksApi.revoke(link.id)
    onDone()
  }
  return (
    <FormDialog title="Revoke share link" action="Revoke link" danger onSubmit={submit} onClose={onClose}>
      <p>
        The link to <Text value={link.name} max={60} /> stops working at once. This cannot be undone.
      </p>
    </FormDialog>
  )
}
