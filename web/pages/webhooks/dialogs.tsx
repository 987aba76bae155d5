/** The dialogs of the Webhooks page: replay a time range, send a test, rotate the secret of an endpoint. */
import { useId } from 'preact/hooks'
import { ApiError } from '../../api/api.ts'
import { isoTime, localMoment, zone } from '../../app/clock.ts'
import { Text } from '../../components/text.tsx'
import { webhookApi, type Endpoint } from '../../api/webhook-api.ts'
import { Field, FormDialog, textOf } from '../../components/dialog.tsx'

interface RangeDialogProps {
  endpoint: Endpoint
  onDone: () => void
  onClose: () => void
}

export function RangeDialog({ endpoint, onDone, onClose }: RangeDialogProps) {
  const submit = async (form: FormData): Promise<void> => {
    const until = textOf(form, 'until')
    await webhookApi.replayRange(
      endpoint.id,
      timeOf(textOf(form, 'from')),
      until === '' ? null : timeOf(until),
    )
    onDone()
  }
  return (
    <FormDialog title="Replay time range" action="Replay" onSubmit={submit} onClose={onClose}>
      <p>
        Events that arrived in this time range and match the filters of{' '}
        <strong>
          <Text value={endpoint.label || endpoint.url} max={64} />
        </strong>{' '}
        are delivered again, in new batches with new message IDs.
      </p>
      <Field name="from" label="From" type="datetime-local" required autofocus hint={`In ${zone.value}`} />
      <Field name="until" label="Until" type="datetime-local" hint="Empty: up to the last delivered event" />
    </FormDialog>
  )
}

/** The field's value is local time in the chosen zone. */
function timeOf(text: string): string {
  const ms = localMoment(text)
  if (ms !== null) return isoTime(ms)
  throw new ApiError(0, 'invalid_body', 'The time is incomplete.', { hint: 'Enter a date and a time.' })
}

/** Sends one test message to any URL, signed with the organization's secret. */
interface TestDialogProps {
  url: string
  onSent: (deliveryId: string) => void
  onClose: () => void
}

const sample = '{\n  "hello": "from Sightglass"\n}'

export function TestDialog({ url, onSent, onClose }: TestDialogProps) {
  const payload = useId()
  const send = async (form: FormData): Promise<void> => {
    onSent(await webhookApi.sendTest(`${form.get('url')}`.trim(), payloadOf(`${form.get('payload')}`)))
  }
  return (
    <FormDialog title="Send test" action="Send test" onSubmit={send} onClose={onClose}>
      <Field
        name="url"
        label="URL"
        value={url}
        required
        hint="Signed with the organization’s secret, not with an endpoint’s."
      />
      <div class="field">
        <label for={payload}>Payload (JSON object)</label>
        <textarea id={payload} name="payload" rows={6} spellcheck={false} defaultValue={sample} />
      </div>
    </FormDialog>
  )
}

function payloadOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new ApiError(0, 'invalid_json', 'The payload is not valid JSON.', {
      hint: 'Check quotes and commas.',
    })
  }
}

interface RotateDialogProps {
  endpoint: Endpoint
  onRotated: (secret: string) => void
  onClose: () => void
}

export function RotateDialog({ endpoint, onRotated, onClose }: RotateDialogProps) {
  return (
    <FormDialog
      title="Rotate signing secret"
      action="Rotate secret"
      onSubmit={async () => onRotated(await webhookApi.rotateSecret(endpoint.id))}
      onClose={onClose}
    >
      <p>
        <strong>
          <Text value={endpoint.label || endpoint.url} max={64} />
        </strong>{' '}
        gets a new secret. Messages are signed with both secrets for 24 hours. After that, receivers that only
        know the old secret reject every message.
      </p>
    </FormDialog>
  )
}
