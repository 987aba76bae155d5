/** The table of keys. */
import type { Key } from '../../api.ts'
import { now } from '../../clock.ts'
import { Text } from '../../components/text.tsx'
import { ago, fullTime, utcTime } from '../../format.ts'
import { inOrder, keyState } from './model.ts'

const stateChip = { active: 'allow', exposed: 'error', expired: 'plain', revoked: 'plain' } as const

interface KeyTableProps {
  keys: Key[]
  showKind: boolean
  onRevoke: ((key: Key) => void) | null
}

export function KeyTable({ keys, showKind, onRevoke }: KeyTableProps) {
  if (keys.length === 0) return <p class="muted">There is no key yet.</p>
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
            {onRevoke && (
              <th scope="col">
                <span class="visually-hidden">Revoke</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {inOrder(keys, nowMs).map((key) => (
            <KeyRow key={key.id} shown={key} showKind={showKind} nowMs={nowMs} onRevoke={onRevoke} />
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
  onRevoke: ((key: Key) => void) | null
}

function KeyRow({ shown, showKind, nowMs, onRevoke }: KeyRowProps) {
  const state = keyState(shown, nowMs)
  const works = state === 'active' || state === 'exposed'
  return (
    <tr class={works ? undefined : 'ended'}>
      <th scope="row">
        <Text value={shown.label} max={36} />
      </th>
      {showKind && <td>{shown.kind}</td>}
      <td class="mono">{shown.prefix}…</td>
      <td>
        <Moment iso={shown.createdAt} nowMs={nowMs} />
      </td>
      <td>
        {shown.lastUsedAt === null ? (
          <span class="muted">never</span>
        ) : (
          <>
            <Moment iso={shown.lastUsedAt} nowMs={nowMs} />
            {shown.lastUsedAddress !== null && <span class="muted"> from {shown.lastUsedAddress}</span>}
          </>
        )}
      </td>
      <td>
        <span class={`chip ${stateChip[state]}`}>{state}</span>
      </td>
      {onRevoke && (
        <td class="actions">
          {works && (
            <button
              type="button"
              class="button"
              aria-label={`Revoke ${shown.label}`}
              onClick={() => onRevoke(shown)}
            >
              Revoke
            </button>
          )}
        </td>
      )}
    </tr>
  )
}

function Moment({ iso, nowMs }: { iso: string; nowMs: number }) {
  const ms = Date.parse(iso)
  return (
    <time dateTime={iso} title={`${fullTime(ms)}\n${utcTime(ms)}`}>
      {ago(ms, nowMs)}
    </time>
  )
}
