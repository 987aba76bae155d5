/** The keys of one screen: what each may do, where it was last used, and the ways to make and to end one. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { api, type ApiError, type Key, type KeyKind } from '../../../api/api.ts'
import { Problem } from '../../../components/problem.tsx'
import { asApiError, mayManage, session } from '../../../app/session.ts'
import { ChangeKeyDialog } from './change-dialog.tsx'
import { CreateKeyDialog } from './create-dialog.tsx'
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

/** What is being done, and to which key; null: nothing. */
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
        <p class="muted">Keys are for owners and admins; your role is {session.value?.role}.</p>
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

/** A key that came with a browser's headers is in a browser, where anybody can read it. */
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
            was sent by a browser, so it is public. Replace it and give the new one to your server. If a proxy
            of yours adds browser headers, have it strip Origin and Sec-Fetch-Site, or make a key that is
            marked “behind a proxy”.
          </p>
          <button type="button" class="button" onClick={() => onRotate(key)}>
            Replace this key
          </button>
        </div>
      ))}
    </>
  )
}
