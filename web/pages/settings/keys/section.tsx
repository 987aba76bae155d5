/** One page of keys: the table, and the dialogs that create, edit, rotate and revoke a key. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { api, type ApiError, type Key, type KeyKind } from '../../../api/api.ts'
import { Problem } from '../../../components/problem.tsx'
import { asApiError, mayManage, session } from '../../../app/session.ts'
import { ChangeKeyDialog, CreateKeyDialog, RevokeKeyDialog, RotateKeyDialog } from './dialogs.tsx'
import { now } from '../../../app/clock.ts'
import { Text } from '../../../components/text.tsx'
import { inOrder, keyState } from './model.ts'
import { minuteTime } from '../../../text/format.ts'
import { Moment } from '../../../components/moment.tsx'

interface KeySectionProps {
  kinds: KeyKind[]
  about: string
}

/** The open dialog and its key; null: none. */
type Doing = { act: 'create' } | { act: 'change' | 'rotate' | 'revoke'; key: Key } | null

export function KeySection({ kinds, about }: KeySectionProps) {
  const keys = useSignal<Key[] | null>(null)
  const problem = useSignal<ApiError | null>(null)
  const doing = useSignal<Doing>(null)
  const load = async (): Promise<void> => {
    try {
      keys.value = (await Promise.all(kinds.map((kind) => api.keys(kind)))).flat()
      problem.value = null
    } catch (error) {
      problem.value = asApiError(error)
    }
  }
  const allowed = mayManage(session.value)
  useEffect(() => void (allowed && load()), [])
  const begin = (act: 'change' | 'rotate' | 'revoke') => (key: Key) => (doing.value = { act, key })
  const acts = { change: begin('change'), rotate: begin('rotate'), revoke: begin('revoke') }
  return (
    <section class="settings-section">
      <p class="about">{about}</p>
      {allowed ? (
        <button
          type="button"
          class="button primary"
          aria-haspopup="dialog"
          onClick={() => (doing.value = { act: 'create' })}
        >
          Create key
        </button>
      ) : (
        <p class="muted">Only owners and admins can manage keys. Your role is {session.value?.role}.</p>
      )}
      {problem.value && <Problem error={problem.value} onRetry={() => void load()} />}
      {keys.value && <ExposedNotice keys={keys.value} onRotate={acts.rotate} />}
      {keys.value && <KeyTable keys={keys.value} showKind={kinds.length > 1} onAct={allowed ? acts : null} />}
      {doing.value && (
        <KeyDialog
          doing={doing.value}
          kinds={kinds}
          onDone={() => void load()}
          onClose={() => (doing.value = null)}
        />
      )}
    </section>
  )
}

interface KeyDialogProps {
  doing: NonNullable<Doing>
  kinds: KeyKind[]
  onDone: () => void
  onClose: () => void
}

function KeyDialog({ doing, kinds, onDone, onClose }: KeyDialogProps) {
  switch (doing.act) {
    case 'create':
      return <CreateKeyDialog kinds={kinds} onCreated={onDone} onClose={onClose} />
    case 'change':
      return <ChangeKeyDialog changed={doing.key} onDone={onDone} onClose={onClose} />
    case 'rotate':
      return <RotateKeyDialog rotated={doing.key} onDone={onDone} onClose={onClose} />
    case 'revoke':
      return <RevokeKeyDialog revoked={doing.key} onDone={onDone} onClose={onClose} />
  }
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

/** The table of keys: limits, last use, state and actions. */
const stateChip = { active: 'allow', exposed: 'error', expired: 'plain', revoked: 'plain' } as const

interface KeyActs {
  change: (key: Key) => void
  rotate: (key: Key) => void
  revoke: (key: Key) => void
}

interface KeyTableProps {
  keys: Key[]
  showKind: boolean
  onAct: KeyActs | null // null: read only
}

function KeyTable({ keys, showKind, onAct }: KeyTableProps) {
  if (keys.length === 0) return <p class="muted">No keys yet. Create one to connect your backend.</p>
  const nowMs = now()
  return (
    <div class="panel table-panel" tabIndex={0} role="region" aria-label="Keys">
      <table class="key-table">
        <thead>
          <tr>
            <th scope="col">Label</th>
            {showKind && <th scope="col">Kind</th>}
            <th scope="col">Key</th>
            <th scope="col">Created</th>
            <th scope="col">Last used</th>
            <th scope="col">State</th>
            {onAct && (
              <th scope="col">
                <span class="visually-hidden">Actions</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {inOrder(keys, nowMs).map((key) => (
            <KeyRow key={key.id} shown={key} showKind={showKind} nowMs={nowMs} onAct={onAct} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

interface KeyRowProps {
  shown: Key
  showKind: boolean
  nowMs: number
  onAct: KeyActs | null
}

function KeyRow({ shown, showKind, nowMs, onAct }: KeyRowProps) {
  const state = keyState(shown, nowMs)
  const works = state === 'active' || state === 'exposed'
  return (
    <tr class={works ? undefined : 'ended'}>
      <th scope="row">
        <Text value={shown.label} max={36} />
        <Limits shown={shown} />
      </th>
      {showKind && <td>{shown.kind}</td>}
      <td class="mono">{shown.prefix}…</td>
      <td>
        <Moment iso={shown.createdAt} />
      </td>
      <td>
        {shown.lastUsedAt === null ? (
          <span class="muted">never</span>
        ) : (
          <>
            <Moment iso={shown.lastUsedAt} />
            {shown.lastUsedAddress !== null && <span class="muted"> from {shown.lastUsedAddress}</span>}
          </>
        )}
      </td>
      <td>
        <span class={`chip ${stateChip[state]}`}>{state}</span>
      </td>
      {onAct && <td class="actions">{works && <Acts shown={shown} onAct={onAct} />}</td>}
    </tr>
  )
}

function Acts({ shown, onAct }: { shown: Key; onAct: KeyActs }) {
  const acts = [
    ['Edit', onAct.change],
    ['Rotate', onAct.rotate],
    ['Revoke', onAct.revoke],
  ] as const
  return (
    <>
      {acts.map(([name, act]) => (
        <button
          key={name}
          type="button"
          class="button"
          aria-label={`${name} ${shown.label}`}
          onClick={() => act(shown)}
        >
          {name}
        </button>
      ))}
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
    <small class="key-limits muted">
      <Text value={limits.join('; ')} max={80} />
    </small>
  )
}
