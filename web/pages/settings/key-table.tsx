/** The table of keys. */
import type { Key } from '../../api.ts'
import { now } from '../../clock.ts'
import { Text } from '../../components/text.tsx'
import { inOrder, keyState } from './model.ts'
import { Moment } from './moment.tsx'

const stateChip = { active: 'allow', exposed: 'error', expired: 'plain', revoked: 'plain' } as const

interface KeyTableProps {
  keys: Key[]
  showKind: boolean
  onRevoke: ((key: Key) => void) | null
  onRotate: (key: Key) => void
}

export function KeyTable({ keys, showKind, onRevoke, onRotate }: KeyTableProps) {
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
                <span class="visually-hidden">Replace or revoke</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {inOrder(keys, nowMs).map((key) => (
            <KeyRow
              key={key.id}
              shown={key}
              showKind={showKind}
              nowMs={nowMs}
              onRevoke={onRevoke}
              onRotate={onRotate}
            />
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
  onRotate: (key: Key) => void
}

function KeyRow({ shown, showKind, nowMs, onRevoke, onRotate }: KeyRowProps) {
  const state = keyState(shown, nowMs)
  const works = state === 'active' || state === 'exposed'
  return (
    <tr class={works ? undefined : 'ended'}>
      <th scope="row">
        <Text value={shown.label} max={36} />
        <Terms shown={shown} />
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
      {onRevoke && (
        <td class="actions">
          {works && (
            <>
              <button
                type="button"
                class="button"
                aria-label={`Replace ${shown.label}`}
                onClick={() => onRotate(shown)}
              >
                Replace
              </button>{' '}
              <button
                type="button"
                class="button"
                aria-label={`Revoke ${shown.label}`}
                onClick={() => onRevoke(shown)}
              >
                Revoke
              </button>
            </>
          )}
        </td>
      )}
    </tr>
  )
}

/** What the key is limited to, in a line below its name. */
function Terms({ shown }: { shown: Key }) {
  const terms = [
    shown.siteIds.length > 0 ? `sites ${shown.siteIds.join(', ')}` : '',
    shown.scopes.length > 0 ? `scopes ${shown.scopes.join(', ')}` : '',
    shown.behindProxy ? 'behind a proxy' : '',
    shown.expiresAt === null ? '' : `until ${shown.expiresAt.slice(0, 16).replace('T', ' ')} UTC`,
  ].filter((term) => term !== '')
  if (terms.length === 0) return null
  return (
    <small class="key-terms muted">
      <Text value={terms.join('; ')} max={80} />
    </small>
  )
}
