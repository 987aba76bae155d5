/** Settings, the pages of keys: the table and its dialogs, and how to install the client package for ingest keys. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { api, get, type Key, type KeyKind } from '../../../api/api.ts'
import { Problem } from '../../../components/problem.tsx'
import { mayManage, session } from '../../../app/session.ts'
import { CreateKeyDialog, EditKeyDialog, RevokeKeyDialog, RotateKeyDialog } from './dialogs.tsx'
import { now } from '../../../app/clock.ts'
import { Text } from '../../../components/text.tsx'
import { minuteTime } from '../../../text/format.ts'
import { Moment } from '../../../components/time.tsx'
import { RecordTable, RowButton, type RecordColumn } from '../../../components/record-table.tsx'
import { RoleNote } from '../../../components/role-note.tsx'
import { useRecords } from '../../../query/use-query.ts'
import { ownAddress } from '../../../app/router.ts'
import { CodeBlock } from '../../../components/copy.tsx'

interface KeySectionProps {
  kinds: KeyKind[]
  about: string
}

const keysQuery = (kinds: KeyKind[]) => ({
  key: `keys ${kinds.join()}`,
  fetch: async (signal: AbortSignal) =>
    (await Promise.all(kinds.map((kind) => api.keys(kind, signal)))).flat(),
})

/** The open dialog and its key. */
type Open = { name: 'create' } | { name: 'edit' | 'rotate' | 'revoke'; key: Key }

export function KeySection({ kinds, about: description }: KeySectionProps) {
  const dialog = useSignal<Open | null>(null)
  const allowed = mayManage(session.value)
  const { data: keys, error: problem, refetch } = useRecords<Key[]>(allowed ? keysQuery(kinds) : null)
  const opener = (name: 'edit' | 'rotate' | 'revoke') => (key: Key) => (dialog.value = { name, key })
  const actions = { edit: opener('edit'), rotate: opener('rotate'), revoke: opener('revoke') }
  return (
    <section class="settings-section">
      <p class="about">{description}</p>
      {allowed ? (
        <button
          type="button"
          class="button primary"
          aria-haspopup="dialog"
          onClick={() => (dialog.value = { name: 'create' })}
        >
          Create key
        </button>
      ) : (
        <RoleNote text="Only owners and admins can manage keys." />
      )}
      {problem.value && <Problem error={problem.value} onRetry={refetch} />}
      {keys.value && <ExposedNotice keys={keys.value} onRotate={actions.rotate} />}
      {keys.value && (
        <KeyTable keys={keys.value} showKind={kinds.length > 1} onAct={allowed ? actions : null} />
      )}
      {dialog.value && (
        <KeyDialog open={dialog.value} kinds={kinds} onDone={refetch} onClose={() => (dialog.value = null)} />
      )}
    </section>
  )
}

interface KeyDialogProps {
  open: Open
  kinds: KeyKind[]
  onDone: () => void
  onClose: () => void
}

function KeyDialog({ open, kinds, onDone, onClose }: KeyDialogProps) {
  switch (open.name) {
    case 'create':
      return <CreateKeyDialog kinds={kinds} onCreated={onDone} onClose={onClose} />
    case 'edit':
      return <EditKeyDialog of={open.key} onDone={onDone} onClose={onClose} />
    case 'rotate':
      return <RotateKeyDialog of={open.key} onDone={onDone} onClose={onClose} />
    case 'revoke':
      return <RevokeKeyDialog of={open.key} onDone={onDone} onClose={onClose} />
  }
}

type KeyState = 'active' | 'exposed' | 'expired' | 'revoked'

/** Revoked wins over every other state. Exposure matters only while the key is usable. */
export function keyState(key: Key, nowMs: number): KeyState {
  if (key.revokedAt !== null) return 'revoked'
  if (key.expiresAt !== null && Date.parse(key.expiresAt) <= nowMs) return 'expired'
  if (key.exposedAt !== null) return 'exposed'
  return 'active'
}

/** Usable keys first, then newest first. */
export function inOrder(keys: Key[], nowMs: number): Key[] {
  const usableFirst = (key: Key): number => (['active', 'exposed'].includes(keyState(key, nowMs)) ? 0 : 1)
  return keys.toSorted((a, b) => usableFirst(a) - usableFirst(b) || (a.createdAt < b.createdAt ? 1 : -1))
}

/** A key that arrived with browser headers is in a browser, where anyone can read it. */
function ExposedNotice({ keys, onRotate }: { keys: Key[]; onRotate: (key: Key) => void }) {
  const exposed = keys.filter((key) => keyState(key, now()) === 'exposed')
  return (
    <>
      {exposed.map((key) => (
        <div class="exposed" role="note" key={key.id}>
          <p>
            <strong>
              <Text value={key.label} max={36} />
            </strong>{' '}
            was sent from a browser, so it is public. Rotate it and store the new key on your server. If your
            proxy forwards browser headers, remove Origin and Sec-Fetch-Site there, or create a key marked
            “behind a proxy”.
          </p>
          <button type="button" class="button" onClick={() => onRotate(key)}>
            Rotate this key
          </button>
        </div>
      ))}
    </>
  )
}

const stateChip = { active: 'allow', exposed: 'error', expired: 'plain', revoked: 'plain' } as const

interface KeyActions {
  edit: (key: Key) => void
  rotate: (key: Key) => void
  revoke: (key: Key) => void
}

interface KeyTableProps {
  keys: Key[]
  showKind: boolean
  onAct: KeyActions | null // null: read only
}

function KeyTable({ keys, showKind, onAct }: KeyTableProps) {
  if (keys.length === 0)
    return (
      <p class="muted">
        No keys yet. Create one to {showKind ? 'read your events' : 'connect your backend'}.
      </p>
    )
  const nowMs = now()
  const isUsable = (key: Key) => ['active', 'exposed'].includes(keyState(key, nowMs))
  const columns: RecordColumn<Key>[] = [
    {
      name: 'Label',
      cell: (key) => (
        <>
          <Text value={key.label} max={36} />
          <Limits shown={key} />
        </>
      ),
    },
    ...(showKind ? [{ name: 'Kind', cell: ({ kind }: Key) => kind }] : []),
    { name: 'Key', class: 'mono', cell: ({ prefix }) => `${prefix}…` },
    { name: 'Created', cell: ({ createdAt }) => <Moment iso={createdAt} /> },
    { name: 'Last used', cell: (key) => <LastUsed {...key} /> },
    {
      name: 'State',
      cell: (key) => {
        const state = keyState(key, nowMs)
        return <span class={`chip ${stateChip[state]}`}>{state}</span>
      },
    },
  ]
  return (
    <RecordTable
      label="Keys"
      rows={inOrder(keys, nowMs)}
      keyOf={({ id }) => id}
      isEnded={(key) => !isUsable(key)}
      columns={columns}
      actions={onAct && ((key) => isUsable(key) && <KeyButtons shown={key} onAct={onAct} />)}
    />
  )
}

function LastUsed({ lastUsedAt, lastUsedAddress }: Key) {
  if (lastUsedAt === null) return <span class="muted">never</span>
  return (
    <>
      <Moment iso={lastUsedAt} />
      {lastUsedAddress !== null && <span class="muted"> from {lastUsedAddress}</span>}
    </>
  )
}

interface KeyRowProps {
  shown: Key
  showKind: boolean
  nowMs: number
  onAct: KeyActions | null
}

function KeyButtons({ shown, onAct }: { shown: Key; onAct: KeyActions }) {
  return (
    <>
      <RowButton label="Edit" of={shown.label} onClick={() => onAct.edit(shown)} />
      <RowButton label="Rotate" of={shown.label} onClick={() => onAct.rotate(shown)} />
      <RowButton label="Revoke" of={shown.label} onClick={() => onAct.revoke(shown)} />
    </>
  )
}

/** The limits of a key, in a line below its label. */
function Limits({ shown }: { shown: Key }) {
  const limits = [
    shown.siteIds.length > 0 ? `sites ${shown.siteIds.join(', ')}` : '',
    shown.scopes.length > 0 ? `scopes ${shown.scopes.join(', ')}` : '',
    shown.behindProxy ? 'behind a proxy' : '',
    shown.expiresAt === null ? '' : `expires ${minuteTime(Date.parse(shown.expiresAt))}`,
  ].filter((limit) => limit !== '')
  if (limits.length === 0) return null
  return (
    <small class="sub-line muted">
      <Text value={limits.join('; ')} max={80} />
    </small>
  )
}

interface Manifest {
  package: string
  browser: { immutablePath: string; integrity: string }
}

/** How to install the client package that this server provides. */
export function ClientPackage() {
  const manifest = useSignal<Manifest | null>(null)
  useEffect(() => {
    // The install command works without the manifest, so a failure is not shown.
    get<Manifest>('/sdk/manifest.json').then(
      (answer) => (manifest.value = answer),
      () => {},
    )
  }, [])
  const url = (session.value?.ingestUrl ?? ownAddress()).replace(/\/$/, '')
  const browser = manifest.value?.browser
  return (
    <section class="settings-section" aria-labelledby="client-package">
      <h3 id="client-package">Client package</h3>
      <p class="muted">
        Install the package from this server; no registry is needed. Its <code>README.md</code> has examples.
      </p>
      <CodeBlock
        text={`npm install ${url}/sdk/sightglass-sdk.tgz`}
        label="Install command"
        copyLabel="Copy command"
      />
      {browser && (
        <>
          <p class="muted">For a page without a bundler, with your server’s relay at /traces:</p>
          <CodeBlock
            text={pageSnippet(url + browser.immutablePath, browser.integrity)}
            label="Browser script"
            copyLabel="Copy script"
          />
        </>
      )}
    </section>
  )
}

function pageSnippet(url: string, integrity: string): string {
  return [
    `<link rel="modulepreload" href="${url}"`,
    `  integrity="${integrity}" crossorigin>`,
    '<script type="module">',
    `  import { captureWebMcp, createBrowserExporter, init } from '${url}'`,
    '  const client = init({',
    `    publishableKey: 'YOUR_PUBLISHABLE_KEY',`,
    `    siteId: 'my-site',`,
    `    exporters: [createBrowserExporter({ url: '/traces' })],`,
    '  })',
    '  captureWebMcp(client)',
    '</script>',
  ].join('\n')
}
