/** The two dialogs of an erasure: choose what to erase, then confirm the number of events. */
import { useSignal } from '@preact/signals'
import { Text } from '../../../components/text.tsx'
import { counted } from '../../../text/format.ts'
import { type Erasure, operateApi } from '../../../api/operate-api.ts'
import { erasureSummary } from './erase-model.ts'
import { Choice, Field, FormDialog, textOf } from '../../../components/form-dialog.tsx'

const kinds = [
  { value: 'subject', text: 'Identity' },
  { value: 'session', text: 'Session' },
] as const

interface Found {
  what: Erasure
  events: number | null // null: too many to count in time
}

interface EraseDialogsProps {
  onErase: (what: Erasure) => Promise<void>
  onClose: () => void
}

export function EraseDialogs({ onErase, onClose }: EraseDialogsProps) {
  const found = useSignal<Found | null>(null)
  if (found.value) return <Confirm found={found.value} onErase={onErase} onClose={onClose} />
  const find = async (form: FormData): Promise<void> => {
    const value = textOf(form, 'value')
    const what = textOf(form, 'kind') === 'session' ? { session: value } : { subject: value }
    found.value = { what, events: await operateApi.countErased(what) }
  }
  return (
    <FormDialog
      key="find"
      title="Erase a session or an identity"
      action="Count events"
      onSubmit={find}
      onClose={() => found.value === null && onClose()} // found: the next dialog is open
    >
      <Choice name="kind" label="Kind" options={kinds} />
      <Field name="value" label="Exact session ID or identity" required />
      <p>Nothing is erased before you confirm the number of events.</p>
    </FormDialog>
  )
}

function Confirm({ found: { what, events }, onErase, onClose }: { found: Found } & EraseDialogsProps) {
  const isSession = 'session' in what
  const value = isSession ? what.session : what.subject
  return (
    <FormDialog
      key="confirm"
      title="Erase permanently"
      action={events ? `Erase ${counted(events, 'event')}` : 'Erase'}
      danger
      onSubmit={() => onErase(what)}
      onClose={onClose}
    >
      <p>
        {isSession ? 'Session' : 'Identity'}{' '}
        <strong>
          <Text value={value} max={200} />
        </strong>
      </p>
      <p>{erasureSummary(events)}</p>
      <p>This cannot be undone. The audit log records the erasure without the ID or identity.</p>
    </FormDialog>
  )
}
