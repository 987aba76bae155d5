/** Replays a time range to an endpoint. */
import { ApiError } from '../../api/api.ts'
import { isoTime } from '../../app/clock.ts'
import { Text } from '../../components/text.tsx'
import { type Endpoint, webhookApi } from '../../api/webhook-api.ts'
import { localMoment, zone } from '../../app/zone.ts'
import { Field, FormDialog, textOf } from '../../components/form-dialog.tsx'

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
