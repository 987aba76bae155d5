/** One page of keys: the table, and the dialogs that create, edit, rotate and revoke a key. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { api, type ApiError, type Key, type KeyKind } from '../../../api/api.ts'
import { Problem } from '../../../components/problem.tsx'
import { asApiError, mayManage, session } from '../../../app/session.ts'
import { ChangeKeyDialog } from './change-dialog.tsx'
import { CreateKeyDialog } from './dialogs.tsx'
import { now } from '../../../app/clock.ts'
import { Text } from '../../../components/text.tsx'
import { keyState } from './model.ts'
import { KeyTable } from './table.tsx'
import { RevokeKeyDialog } from './revoke-dialog.tsx'
import { RotateKeyDialog } from './rotate-dialog.tsx'

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
