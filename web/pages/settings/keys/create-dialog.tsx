/** Making a key: a label, then the key itself, shown this once with the call that proves it. */
import { useSignal } from '@preact/signals'
import { useId, useState } from 'preact/hooks'
import { api, type ApiError, type Key, type KeyKind } from '../../../api/api.ts'
import { ownAddress } from '../../../app/base-path.ts'
import { now } from '../../../app/clock.ts'
import { CodeBlock } from '../../../components/code-block.tsx'
import { CopyButton } from '../../../components/copy-button.tsx'
import { Dialog } from '../../../components/dialog.tsx'
import { Problem } from '../../../components/problem.tsx'
import { sampleBody, sendCurl } from '../../../api/curl.ts'
import { asApiError, session } from '../../../app/session.ts'
import { KeyTermsFields, termsOf } from './key-settings.tsx'
import { kindName, provingCall } from './model.ts'

interface CreateKeyDialogProps {
  kinds: KeyKind[]
  onCreated: () => void
  onClose: () => void
}

interface Made {
  key: Key
  secret: string
}

export function CreateKeyDialog({ kinds, onCreated, onClose }: CreateKeyDialogProps) {
  const made = useSignal<Made | null>(null)
  if (made.value) {
    return (
      <Dialog key="made" title={`Your new ${kindName[made.value.key.kind]}`} sticky onClose={onClose}>
        <ShowOnce made={made.value} onClose={onClose} />
      </Dialog>
    )
  }
  return (
    <Dialog key="make" title="Create key" onClose={onClose}>
      <KeyForm
        kinds={kinds}
        onClose={onClose}
        onMade={(key) => {
          made.value = key
          onCreated()
        }}
      />
    </Dialog>
  )
}

interface KeyFormProps {
  kinds: KeyKind[]
  onClose: () => void
  onMade: (made: Made) => void
}

const about: { [kind in KeyKind]: string } = {
  ingest: 'sends events from your backend',
  secret: 'reads and exports; stays on your server',
  publishable: 'names your organization in a browser; opens nothing',
}

function KeyForm({ kinds, onClose, onMade }: KeyFormProps) {
  const problem = useSignal<ApiError | null>(null)
  const busy = useSignal(false)
  const id = useId()
  const submit = async (form: FormData): Promise<void> => {
    if (busy.value) return
    busy.value = true
    problem.value = null
    try {
      const kind = kinds.find((candidate) => candidate === form.get('kind')) ?? kinds[0] ?? 'ingest'
      onMade(await api.createKey({ kind, label: String(form.get('label')).trim(), ...termsOf(kind, form) }))
    } catch (error) {
      problem.value = asApiError(error)
    } finally {
      busy.value = false
    }
  }
  return (
    <form
      class="key-form"
      onSubmit={(event) => {
        event.preventDefault()
        void submit(new FormData(event.currentTarget))
      }}
    >
      {kinds.length > 1 && (
        <fieldset class="kind-choice">
          <legend>Kind</legend>
          {kinds.map((kind, i) => (
            <label>
              <input type="radio" name="kind" value={kind} defaultChecked={i === 0} />
              <span>
                {kind}
                <span class="muted">, {about[kind]}</span>
              </span>
            </label>
          ))}
        </fieldset>
      )}
      <div class="field">
        <label for={id}>Label</label>
        <input
          id={id}
          name="label"
          required
          maxLength={80}
          data-first-focus
          autocomplete="off"
          aria-describedby={`${id}-hint`}
        />
        <p class="hint" id={`${id}-hint`}>
          Says where the key is used, such as “shop backend”.
        </p>
      </div>
      <KeyTermsFields kinds={kinds} />
      {problem.value && <Problem error={problem.value} />}
      <div class="dialog-foot">
        <button type="button" class="button" onClick={onClose}>
          Cancel
        </button>
        <button type="submit" class="button primary" aria-disabled={busy.value}>
          Create key
        </button>
      </div>
    </form>
  )
}

function ShowOnce({ made, onClose }: { made: Made; onClose: () => void }) {
  const { key, secret } = made
  const proof = useProof(key.kind, secret)
  return (
    <>
      <p>
        <strong>Copy it now.</strong> Only a fingerprint is kept, so nobody can show it again.
      </p>
      <div class="secret">
        <output class="mono" tabIndex={0} aria-label="The new key">
          {secret}
        </output>
        <CopyButton text={secret} label="Copy key" primary />
      </div>
      {proof !== null && (
        <>
          <p>{key.kind === 'ingest' ? 'Send a first event with it:' : 'Read the newest event with it:'}</p>
          <CodeBlock text={proof} label="Command that uses the key" copyLabel="Copy command" />
        </>
      )}
      <div class="dialog-foot">
        <button type="button" class="button" onClick={onClose}>
          Done
        </button>
      </div>
    </>
  )
}

/** The command is made once, so that what was copied stays what is shown. */
function useProof(kind: KeyKind, secret: string): string | null {
  const [proof] = useState(() => {
    const call = provingCall(kind)
    const ingestUrl = session.peek()?.ingestUrl ?? ownAddress()
    if (call === 'send') return sendCurl(ingestUrl, secret, sampleBody('agent', now()))
    if (call === 'read')
      return `curl '${ownAddress()}/v1/traces?limit=1' \\\n  -H 'authorization: Bearer ${secret}'`
    return null
  })
  return proof
}
