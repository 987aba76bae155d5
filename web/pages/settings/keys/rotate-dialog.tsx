/** Replacing a key: a successor with the same terms, shown once, while the old one works on for a chosen time. */
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
  { value: '24', text: 'a day' },
  { value: '0', text: 'not at all: it is refused at once' },
  { value: '1', text: 'an hour' },
  { value: '168', text: 'a week' },
  { value: '720', text: '30 days' },
] as const

export function RotateKeyDialog({ rotated, onDone, onClose }: RotateKeyDialogProps) {
  const secret = useSignal<string | null>(null)
  if (secret.value !== null) {
    return (
      <Dialog key="made" title={`Your new ${kindName[rotated.kind]}`} sticky onClose={onClose}>
        <p>
          <strong>Copy it now.</strong> Only a fingerprint is kept, so nobody can show it again.
        </p>
        <div class="secret">
          <code tabIndex={0} aria-label="The new key">
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
  // An exposed key is in strangers' hands: every hour it lives on is theirs too.
  const overlap = rotated.exposedAt === null ? '24' : '0'
  const keepOpen = () => secret.value === null && onClose()
  return (
    <FormDialog key="ask" title="Replace key" action="Make the new key" onSubmit={submit} onClose={keepOpen}>
      <p>
        A new {kindName[rotated.kind]} with the name and limits of{' '}
        <strong>
          <Text value={rotated.label} />
        </strong>
        .
      </p>
      <Choice name="overlap" label="The old one works on for" options={overlaps} value={overlap} />
    </FormDialog>
  )
}
