/** The table of keys: limits, last use, state and actions. */
import type { Key } from '../../../api/api.ts'
import { now } from '../../../app/clock.ts'
import { Text } from '../../../components/text.tsx'
import { minuteTime } from '../../../text/format.ts'
import { inOrder, keyState } from './model.ts'
import { Moment } from '../../../components/moment.tsx'

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

export function KeyTable({ keys, showKind, onAct }: KeyTableProps) {
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
