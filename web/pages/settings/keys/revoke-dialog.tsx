/** Revokes a key after naming it and what stops. */
import { useSignal } from '@preact/signals'
import { api, type ApiError, type Key } from '../../../api/api.ts'
import { Dialog } from '../../../components/dialog.tsx'
import { Problem } from '../../../components/problem.tsx'
import { Text } from '../../../components/text.tsx'
import { asApiError } from '../../../app/session.ts'
import { kindName } from './model.ts'

interface RevokeKeyDialogProps {
  revoked: Key
  onDone: () => void
  onClose: () => void
}

export function RevokeKeyDialog({ revoked, onDone, onClose }: RevokeKeyDialogProps) {
  const problem = useSignal<ApiError | null>(null)
  const busy = useSignal(false)
  const revoke = async (): Promise<void> => {
    if (busy.value) return
    busy.value = true
    try {
      await api.revokeKey(revoked.id)
      onDone()
      onClose()
    } catch (error) {
      problem.value = asApiError(error)
    } finally {
      busy.value = false
    }
  }
  return (
    <Dialog title="Revoke key" onClose={onClose}>
      <p>
        Revoke the {kindName[revoked.kind]}{' '}
        <strong>
          <Text value={revoked.label} />
        </strong>{' '}
        (<code>{revoked.prefix}…</code>)?
      </p>
      <p>Requests with this key are rejected immediately. Events it sent remain. This cannot be undone.</p>
      {problem.value && <Problem error={problem.value} />}
      <div class="dialog-foot">
        <button type="button" class="button" data-first-focus onClick={onClose}>
          Cancel
        </button>
        <button type="button" class="button danger" aria-disabled={busy.value} onClick={() => void revoke()}>
          Revoke key
        </button>
      </div>
    </Dialog>
  )
}
