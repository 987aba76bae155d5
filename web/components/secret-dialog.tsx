/** A dialog that shows a secret once, such as a new key, with a copy button. It closes only after a confirmation. */
import './secret-dialog.css'
import type { ComponentChildren } from 'preact'
import { CopyButton } from './copy.tsx'
import { Dialog } from './dialog.tsx'

interface SecretDialogProps {
  title: string
  about: ComponentChildren
  label: string // of the secret
  secret: string
  copyLabel: string
  onClose: () => void
  children?: ComponentChildren
}

export function SecretDialog(props: SecretDialogProps) {
  const { title, about, label, secret, copyLabel, onClose, children } = props
  return (
    <Dialog title={title} sticky onClose={onClose}>
      <p>{about}</p>
      <div class="secret">
        <output class="mono" tabIndex={0} aria-label={label}>
          {secret}
        </output>
        <CopyButton text={secret} label={copyLabel} primary />
      </div>
      {children}
      <div class="dialog-foot">
        <button type="button" class="button" onClick={onClose}>
          Done, I saved it
        </button>
      </div>
    </Dialog>
  )
}
