/** Erasing what belongs to one session or one identity, for good. */
import { useSignal } from '@preact/signals'
import { counted } from '../../format.ts'
import { type ErasedAnswer, operateApi } from '../../operate-api.ts'
import { session } from '../../session.ts'
import { Choice, Field, FormDialog, textOf } from './form-dialog.tsx'

const kinds = [
  { value: 'subject', text: 'Identity' },
  { value: 'session', text: 'Session' },
] as const

export function EraseButton() {
  const asking = useSignal(false)
  const done = useSignal<ErasedAnswer | null>(null)
  if (session.value?.role !== 'owner') return null
  const erase = async (form: FormData): Promise<void> => {
    const value = textOf(form, 'value')
    done.value = await operateApi.erase(
      textOf(form, 'kind') === 'session' ? { session: value } : { subject: value },
    )
  }
  return (
    <>
      <button type="button" class="button" aria-haspopup="dialog" onClick={() => (asking.value = true)}>
        Erase a session or an identity
      </button>
      <div role="status">{done.value && <Done answer={done.value} />}</div>
      {asking.value && (
        <FormDialog
          title="Erase for good"
          action="Erase"
          danger
          onSubmit={erase}
          onClose={() => (asking.value = false)}
        >
          <Choice name="kind" label="What" options={kinds} />
          <Field name="value" label="Exactly this id or identity" required />
          <p>Every event of it goes, with its copies in deliveries and samples. This cannot be undone.</p>
        </FormDialog>
      )}
    </>
  )
}

function Done({ answer: { erased, beyond } }: { answer: ErasedAnswer }) {
  return (
    <>
      <p>
        Erased {counted(erased.events, 'event')}, {counted(erased.deliveries, 'delivery', 'deliveries')} and{' '}
        {counted(erased.samples, 'sample')}.
      </p>
      <p class="muted">Out of reach: {beyond.join('; ')}.</p>
    </>
  )
}
