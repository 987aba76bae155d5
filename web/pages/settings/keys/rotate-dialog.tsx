/** Rotates a key: creates a key with the same label and limits and lets the old one expire after a chosen time. */
import { useSignal } from '@preact/signals'
import type { Key } from '../../../api/api.ts'
import { CopyButton } from '../../../components/copy-button.tsx'
import { Dialog } from '../../../components/dialog.tsx'
import { Text } from '../../../components/text.tsx'
import { identityApi } from '../../../api/identity-api.ts'
import { Choice, FormDialog, textOf } from '../../../components/form-dialog.tsx'
import { kindName } from './model.ts'

interface RotateKeyDialogProps {
  rotated: Key
  onDone: () => void
  onClose: () => void
}

const overlaps = [
  { value: '0', text: 'immediately' },
  { value: '1', text: 'in 1 hour' },
  { value: '24', text: 'in 24 hours' },
  { value: '168', text: 'in 7 days' },
  { value: '720', text: 'in 30 days' },
] as const

export function RotateKeyDialog({ rotated, onDone, onClose }: RotateKeyDialogProps) {
  const secret = useSignal<string | null>(null)
  if (secret.value !== null) {
    return (
      <Dialog key="made" title={`Your new ${kindName[rotated.kind]}`} sticky onClose={onClose}>
        <p>
          <strong>Copy it now.</strong> Only a hash is stored, so it cannot be shown again.
        </p>
        <div class="secret">
          <code tabIndex={0} aria-label="New key">
            {secret.value}
          </code>
          <CopyButton text={secret.value} label="Copy key" primary />
        </div>
        <div class="dialog-foot">
          <button type="button" class="button" onClick={onClose}>
            Done
          </button>
        </div>
      </Dialog>
    )
  }
  const submit = async (form: FormData): Promise<void> => {
    secret.value = (await identityApi.rotateKey(rotated.id, Number(textOf(form, 'overlap')))).secret
    onDone()
  }
  // An exposed key is public, so it should stop working immediately.
  const overlap = rotated.exposedAt === null ? '24' : '0'
  const keepOpen = () => secret.value === null && onClose()
  return (
    <FormDialog key="ask" title="Rotate key" action="Create new key" onSubmit={submit} onClose={keepOpen}>
      <p>
        Creates a new {kindName[rotated.kind]} with the label and limits of{' '}
        <strong>
          <Text value={rotated.label} />
        </strong>
        .
      </p>
      <Choice name="overlap" label="Old key expires" options={overlaps} value={overlap} />
    </FormDialog>
  )
}
