/** Shows a new signing secret once. */
import { CopyButton } from './copy-button.tsx'
import { Dialog } from './dialog.tsx'

export function SecretDialog(props: { title: string; secret: string; about: string; onClose: () => void }) {
  return (
    <Dialog title={props.title} sticky onClose={props.onClose}>
      <p>{props.about}</p>
      <div class="secret">
        <output class="mono" aria-label="Signing secret">
          {props.secret}
        </output>
        <CopyButton text={props.secret} label="Copy secret" primary />
      </div>
      <div class="dialog-foot">
        <button type="button" class="button" data-first-focus onClick={props.onClose}>
          Done, I saved it
        </button>
      </div>
    </Dialog>
  )
}
