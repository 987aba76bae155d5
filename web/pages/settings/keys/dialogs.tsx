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
import { KeyLimitFields, changeOf, limitsOf } from './key-settings.tsx'
import { exampleCall, kindName } from './model.ts'
import { Text } from '../../../components/text.tsx'
import { identityApi } from '../../../api/identity-api.ts'
import { Choice, Field, FormDialog, textOf } from '../../../components/form-dialog.tsx'

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

/** Rotates a key: creates a key with the same label and limits and lets the old one expire after a chosen time. */
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

/** Edits the label and limits of a key; the secret stays the same. */
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

/** Revokes a key after naming it and what stops. */
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
