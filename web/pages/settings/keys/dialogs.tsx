/** Creates a key: the form, then the key itself, shown once with an example call. */
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
import { KeyLimitFields, limitsOf } from './key-settings.tsx'
import { kindName, exampleCall } from './model.ts'

interface CreateKeyDialogProps {
  kinds: KeyKind[]
  onCreated: () => void
  onClose: () => void
}

interface Created {
  key: Key
  secret: string
}

export function CreateKeyDialog({ kinds, onCreated, onClose }: CreateKeyDialogProps) {
  const created = useSignal<Created | null>(null)
  if (created.value) {
    return (
      <Dialog key="created" title={`Your new ${kindName[created.value.key.kind]}`} sticky onClose={onClose}>
        <ShowOnce created={created.value} onClose={onClose} />
      </Dialog>
    )
  }
  return (
    <Dialog key="make" title="Create key" onClose={onClose}>
      <KeyForm
        kinds={kinds}
        onClose={onClose}
        onCreated={(key) => {
          created.value = key
          onCreated()
        }}
      />
    </Dialog>
  )
}

interface KeyFormProps {
  kinds: KeyKind[]
  onClose: () => void
  onCreated: (created: Created) => void
}

const about: { [kind in KeyKind]: string } = {
  ingest: 'sends events from your backend',
  secret: 'reads and exports; stays on your server',
  publishable: 'identifies your organization in a browser; grants no access',
}

function KeyForm({ kinds, onClose, onCreated }: KeyFormProps) {
  const problem = useSignal<ApiError | null>(null)
  const busy = useSignal(false)
  const id = useId()
  const submit = async (form: FormData): Promise<void> => {
    if (busy.value) return
    busy.value = true
    problem.value = null
    try {
      const kind = kinds.find((candidate) => candidate === form.get('kind')) ?? kinds[0] ?? 'ingest'
      onCreated(
        await api.createKey({ kind, label: String(form.get('label')).trim(), ...limitsOf(kind, form) }),
      )
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
          Where the key is used, for example “shop backend”.
        </p>
      </div>
      <KeyLimitFields kinds={kinds} />
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

function ShowOnce({ created, onClose }: { created: Created; onClose: () => void }) {
  const { key, secret } = created
  const example = useExampleCall(key.kind, secret)
  return (
    <>
      <p>
        <strong>Copy it now.</strong> Only a hash is stored, so it cannot be shown again.
      </p>
      <div class="secret">
        <output class="mono" tabIndex={0} aria-label="New key">
          {secret}
        </output>
        <CopyButton text={secret} label="Copy key" primary />
      </div>
      {example !== null && (
        <>
          <p>{key.kind === 'ingest' ? 'Send a first event:' : 'Read the newest event:'}</p>
          <CodeBlock text={example} label="Example command" copyLabel="Copy command" />
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

/** The command is built once, so that the copied text equals the shown text. */
function useExampleCall(kind: KeyKind, secret: string): string | null {
  const [example] = useState(() => {
    const call = exampleCall(kind)
    const ingestUrl = session.peek()?.ingestUrl ?? ownAddress()
    if (call === 'send') return sendCurl(ingestUrl, secret, sampleBody('agent', now()))
    if (call === 'read')
      return `curl '${ownAddress()}/v1/traces?limit=1' \\\n  -H 'authorization: Bearer ${secret}'`
    return null
  })
  return example
}
