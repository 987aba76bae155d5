/** Sends one test message to any URL, signed with the organization's secret. */
import { useId } from 'preact/hooks'
import { ApiError } from '../../api/api.ts'
import { webhookApi } from '../../api/webhook-api.ts'
import { Field, FormDialog } from '../../components/form-dialog.tsx'

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
