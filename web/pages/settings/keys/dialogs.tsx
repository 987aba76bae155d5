/** The dialogs of a key: create, edit, rotate and revoke, with its limits as form fields. A new key is shown once. */
import { useSignal } from '@preact/signals'
import { useState } from 'preact/hooks'
import { api, type Key, type KeyKind, type KeyWanted } from '../../../api/api.ts'
import { CodeBlock, sampleBody, sendCurl } from '../../../components/copy.tsx'
import { identityApi } from '../../../api/identity-api.ts'
import { ownAddress } from '../../../app/router.ts'
import { dayOf, dayStart, isoTime, now, zone } from '../../../app/clock.ts'
import { session } from '../../../app/session.ts'
import { Choice, Field, FormDialog, SecretDialog, textOf } from '../../../components/dialog.tsx'
import { Text } from '../../../components/text.tsx'

const kindName: { [kind in KeyKind]: string } = {
  ingest: 'ingest key',
  secret: 'secret key',
  publishable: 'publishable key',
}

interface CreateKeyDialogProps {
  kinds: KeyKind[]
  onCreated: () => void
  onClose: () => void
}

interface Created {
  key: Key
  secret: string
}

const descriptions: { [kind in KeyKind]: string } = {
  ingest: 'sends events from your backend',
  secret: 'reads and exports; stays on your server',
  publishable: 'identifies your organization in a browser; grants no access',
}

export function CreateKeyDialog({ kinds, onCreated, onClose }: CreateKeyDialogProps) {
  const created = useSignal<Created | null>(null)
  if (created.value) return <NewKeyDialog created={created.value} onClose={onClose} />
  const submit = async (form: FormData): Promise<void> => {
    const kind = kinds.find((candidate) => candidate === form.get('kind')) ?? kinds[0] ?? 'ingest'
    created.value = await api.createKey({
      kind,
      label: textOf(form, 'label').trim(),
      ...limitsOf(kind, form),
    })
    onCreated()
  }
  return (
    <FormDialog
      key="form"
      title="Create key"
      action="Create key"
      onSubmit={submit}
      onClose={() => created.value === null && onClose()} // otherwise the new key is shown
    >
      {kinds.length > 1 && <KindChoice kinds={kinds} />}
      <Field
        name="label"
        label="Label"
        hint="Where the key is used, for example “shop backend”."
        required
        autofocus
        maxLength={80}
      />
      <KeyLimitFields kinds={kinds} />
    </FormDialog>
  )
}

function KindChoice({ kinds }: { kinds: KeyKind[] }) {
  return (
    <fieldset class="kind-choice">
      <legend>Kind</legend>
      {kinds.map((kind, i) => (
        <label>
          <input type="radio" name="kind" value={kind} defaultChecked={i === 0} />
          <span>
            {kind}
            <span class="muted">, {descriptions[kind]}</span>
          </span>
        </label>
      ))}
    </fieldset>
  )
}

function NewKeyDialog({ created, onClose }: { created: Created; onClose: () => void }) {
  const { key, secret } = created
  const example = useExampleCall(key.kind, secret)
  return (
    <SecretDialog
      title={`Your new ${kindName[key.kind]}`}
      about={newKeyNotice}
      label="New key"
      secret={secret}
      copyLabel="Copy key"
      onClose={onClose}
    >
      {example !== null && (
        <>
          <p>{key.kind === 'ingest' ? 'Send a first event:' : 'Read the newest event:'}</p>
          <CodeBlock text={example} label="Example command" copyLabel="Copy command" />
        </>
      )}
    </SecretDialog>
  )
}

const newKeyNotice = (
  <>
    <strong>Copy it now.</strong> Only a hash is stored, so it cannot be shown again.
  </>
)

/** The example call shown with a new key; null for a key that grants no access. */
function exampleCall(kind: KeyKind): 'send' | 'read' | null {
  if (kind === 'ingest') return 'send'
  return kind === 'secret' ? 'read' : null
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

interface KeyDialogProps {
  of: Key
  onDone: () => void
  onClose: () => void
}

/** Edits the label and limits of a key; the secret stays the same. */
export function EditKeyDialog({ of: edited, onDone, onClose }: KeyDialogProps) {
  const submit = async (form: FormData): Promise<void> => {
    const change = changeOf(edited, form)
    if (Object.keys(change).length === 0) return
    await identityApi.changeKey(edited.id, change)
    onDone()
  }
  return (
    <FormDialog title="Edit key" action="Save" onSubmit={submit} onClose={onClose}>
      <p>
        Changes to the {kindName[edited.kind]} <code>{edited.prefix}…</code> apply from its next request.
      </p>
      <Field name="label" label="Label" value={edited.label} required autofocus maxLength={80} />
      <KeyLimitFields kinds={[edited.kind]} of={edited} />
    </FormDialog>
  )
}

const overlaps = [
  { value: '0', text: 'immediately' },
  { value: '1', text: 'in 1 hour' },
  { value: '24', text: 'in 24 hours' },
  { value: '168', text: 'in 7 days' },
  { value: '720', text: 'in 30 days' },
] as const

/** Creates a key with the same label and limits, and lets the old one expire after a chosen time. */
export function RotateKeyDialog({ of: rotated, onDone, onClose }: KeyDialogProps) {
  const secret = useSignal<string | null>(null)
  if (secret.value !== null) {
    return (
      <SecretDialog
        title={`Your new ${kindName[rotated.kind]}`}
        about={newKeyNotice}
        label="New key"
        secret={secret.value}
        copyLabel="Copy key"
        onClose={onClose}
      />
    )
  }
  const submit = async (form: FormData): Promise<void> => {
    secret.value = (await identityApi.rotateKey(rotated.id, Number(textOf(form, 'overlap')))).secret
    onDone()
  }
  // An exposed key is public, so it should stop working immediately.
  const overlap = rotated.exposedAt === null ? '24' : '0'
  return (
    <FormDialog
      key="form"
      title="Rotate key"
      action="Create new key"
      onSubmit={submit}
      onClose={() => secret.value === null && onClose()} // otherwise the new key is shown
    >
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

export function RevokeKeyDialog({ of: revoked, onDone, onClose }: KeyDialogProps) {
  const submit = async (): Promise<void> => {
    await api.revokeKey(revoked.id)
    onDone()
  }
  return (
    <FormDialog title="Revoke key" action="Revoke key" danger onSubmit={submit} onClose={onClose}>
      <p>
        Revoke the {kindName[revoked.kind]}{' '}
        <strong>
          <Text value={revoked.label} />
        </strong>{' '}
        (<code>{revoked.prefix}…</code>)?
      </p>
      <p>Requests with this key are rejected immediately. Events it sent remain. This cannot be undone.</p>
    </FormDialog>
  )
}

const scopes = ['traces:read', 'metrics:read', 'audit:read', 'webhooks:read', 'webhooks:write']

/** Sites and proxy for ingest keys, scopes for secret keys, and an expiry. `apiKey`: the key being edited. */
function KeyLimitFields({ kinds, of: apiKey }: { kinds: KeyKind[]; of?: Key }) {
  return (
    <details open={apiKey !== undefined}>
      <summary>Limits</summary>
      <div class="dialog-form">
        {kinds.includes('ingest') && (
          <>
            <Field
              name="siteIds"
              label="Sites"
              value={apiKey?.siteIds.join(', ') ?? ''}
              hint="Site IDs, separated by commas. Empty: all sites."
            />
            <label>
              <input type="checkbox" name="behindProxy" defaultChecked={apiKey?.behindProxy ?? false} />{' '}
              Behind a proxy that forwards browser headers
            </label>
          </>
        )}
        {kinds.includes('secret') && (
          <fieldset class="kind-choice">
            <legend>Scopes of a secret key (none selected: all)</legend>
            {scopes.map((scope) => (
              <label>
                <input
                  type="checkbox"
                  name="scope"
                  value={scope}
                  defaultChecked={apiKey?.scopes.includes(scope) ?? false}
                />{' '}
                {scope}
              </label>
            ))}
          </fieldset>
        )}
        <Field
          name="expires"
          label="Expires on"
          type="date"
          value={endDay(apiKey?.expiresAt ?? null)}
          hint={`At the end of that day, ${zone.value}. Empty: never.`}
        />
      </div>
    </details>
  )
}

function endDay(expiresAt: string | null): string {
  return expiresAt === null ? '' : dayOf(Date.parse(expiresAt))
}

/** The last second of a day. An invalid day is sent unchanged, so that the server's error names it. */
function endOf(day: string): string {
  const nextMs = dayStart(day, 1)
  return nextMs === null ? day : isoTime(nextMs - 1_000)
}

/** The fields that differ from the key. An expiry on the same day is unchanged. */
function changeOf(key: Key, form: FormData): Omit<Partial<KeyWanted>, 'kind'> {
  const { siteIds = [], scopes = [], behindProxy = false, expiresAt = null } = limitsOf(key.kind, form)
  const label = textOf(form, 'label').trim()
  const isSame = (a: string[], b: string[]) => JSON.stringify(a) === JSON.stringify(b)
  return {
    ...(label !== key.label && { label }),
    ...(!isSame(siteIds, key.siteIds) && { siteIds }),
    ...(!isSame(scopes, key.scopes) && { scopes }),
    ...(behindProxy !== key.behindProxy && { behindProxy }),
    ...(endDay(expiresAt) !== endDay(key.expiresAt) && { expiresAt }),
  }
}

/** Sends scopes and sites only for their kind of key, even if hidden fields of the form hold values. */
function limitsOf(kind: KeyKind, form: FormData): Omit<KeyWanted, 'kind' | 'label'> {
  const day = textOf(form, 'expires')
  const siteIds = textOf(form, 'siteIds')
    .split(',')
    .map((id) => id.trim())
    .filter((id) => id !== '')
  return {
    ...(kind === 'ingest' && siteIds.length > 0 ? { siteIds } : {}),
    ...(kind === 'ingest' && form.has('behindProxy') ? { behindProxy: true } : {}),
    ...(kind === 'secret' ? { scopes: form.getAll('scope').map(String) } : {}),
    ...(day === '' ? {} : { expiresAt: endOf(day) }),
  }
}
