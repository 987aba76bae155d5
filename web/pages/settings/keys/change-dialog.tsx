/** Edits the label and limits of a key; the secret stays the same. */
import type { Key } from '../../../api/api.ts'
import { identityApi } from '../../../api/identity-api.ts'
import { Field, FormDialog } from '../../../components/form-dialog.tsx'
import { changeOf, KeyLimitFields } from './key-settings.tsx'
import { kindName } from './model.ts'

interface ChangeKeyDialogProps {
  changed: Key
  onDone: () => void
  onClose: () => void
}

export function ChangeKeyDialog({ changed, onDone, onClose }: ChangeKeyDialogProps) {
  const submit = async (form: FormData): Promise<void> => {
    const change = changeOf(changed, form)
    if (Object.keys(change).length === 0) return
    await identityApi.changeKey(changed.id, change)
    onDone()
  }
  return (
    <FormDialog title="Edit key" action="Save" onSubmit={submit} onClose={onClose}>
      <p>
        Changes to the {kindName[changed.kind]} <code>{changed.prefix}…</code> apply from its next request.
      </p>
      <Field name="label" label="Label" value={changed.label} required autofocus maxLength={80} />
      <KeyLimitFields kinds={[changed.kind]} of={changed} />
    </FormDialog>
  )
}
