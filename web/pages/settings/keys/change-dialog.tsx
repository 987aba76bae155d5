/** Changing a key in use: its name, and what it is limited to. The key itself stays. */
import type { Key } from '../../../api/api.ts'
import { identityApi } from '../../../api/identity-api.ts'
import { Field, FormDialog } from '../../../components/form-dialog.tsx'
import { changeOf, KeyTermsFields } from './key-settings.tsx'
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
        The {kindName[changed.kind]} <code>{changed.prefix}…</code> goes on as it is; what changes here holds
        from its next request.
      </p>
      <Field name="label" label="Label" value={changed.label} required autofocus maxLength={80} />
      <KeyTermsFields kinds={[changed.kind]} of={changed} />
    </FormDialog>
  )
}
