/** Erases the data of one session or identity: the button, its dialogs and the progress. Owners only. */
import { useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { Problem } from '../../../components/problem.tsx'
import { refreshWhile } from '../../../query/query.ts'
import { useRecords } from '../../../query/use-query.ts'
import { counted } from '../../../text/format.ts'
import { operateApi, type Erasure, type Erasures } from '../../../api/operate-api.ts'
import { refreshOverview, session } from '../../../app/session.ts'
import { Moment } from '../../../components/time.tsx'
import { Text } from '../../../components/text.tsx'
import { Choice, Field, FormDialog, textOf } from '../../../components/dialog.tsx'

/** Progress is polled because no stream reports it. */
const pollMs = 500

export function Erase() {
  return session.value?.role === 'owner' ? <OwnersErase /> : null
}

function OwnersErase() {
  const policy = useMemo(() => refreshWhile<Erasures>(({ running }) => running !== null, pollMs), [])
  const {
    data: erasures,
    error: problem,
    refetch,
    replace,
  } = useRecords<Erasures>(
    {
      key: 'erasures',
      fetch: (signal) => operateApi.erasures(signal),
    },
    policy,
  )
  const isOpen = useSignal(false)
  const isRunning = erasures.value?.running != null
  const endedAt = erasures.value?.last?.endedAt
  useEffect(() => {
    if (endedAt !== undefined) void refreshOverview() // fewer events are stored now
  }, [endedAt])
  const erase = async (erasure: Erasure): Promise<void> => {
    replace(await operateApi.erase(erasure))
  }
  return (
    <>
      <button
        type="button"
        class="button"
        aria-haspopup="dialog"
        aria-disabled={isRunning}
        onClick={() => isRunning || (isOpen.value = true)}
      >
        Erase a session or an identity
      </button>
      {problem.value && <Problem error={problem.value} onRetry={refetch} />}
      <div role="status">{erasures.value && <State of={erasures.value} />}</div>
      {isOpen.value && <EraseDialogs onErase={erase} onClose={() => (isOpen.value = false)} />}
    </>
  )
}

function State({ of: { running, last, beyond } }: { of: Erasures }) {
  if (running) {
    return (
      <p>
        Erasing {nameOf(running.by)}: {counted(running.events, 'event')} so far. It continues if you leave
        this page.
      </p>
    )
  }
  if (!last) return null
  const { erased, problem } = last
  return (
    <>
      <p>
        {erased ? (
          <>
            {`Erased ${counted(erased.events, 'event')}, ${counted(erased.deliveries, 'delivery', 'deliveries')} and ` +
              `${counted(erased.samples, 'sample')} of ${nameOf(last.by)}`}
            , <Moment iso={last.endedAt} />.
          </>
        ) : (
          <>
            Erasing {nameOf(last.by)} failed <Moment iso={last.endedAt} />: {problem}. Some data may remain.
            Run it again.
          </>
        )}
      </p>
      {erased && <p class="muted">Not erased: {beyond.join('; ')}.</p>}
    </>
  )
}

const nameOf = (erasureKind: 'session' | 'subject'): string =>
  erasureKind === 'session' ? 'a session' : 'an identity'

const kinds = [
  { value: 'subject', text: 'Identity' },
  { value: 'session', text: 'Session' },
] as const

interface Found {
  what: Erasure
  events: number | null // null: too many to count in time
}

interface EraseDialogsProps {
  onErase: (erasure: Erasure) => Promise<void>
  onClose: () => void
}

/** The two dialogs of an erasure: choose what to erase, then confirm the number of events. */
function EraseDialogs({ onErase, onClose }: EraseDialogsProps) {
  const preview = useSignal<Found | null>(null)
  if (preview.value) return <Confirm found={preview.value} onErase={onErase} onClose={onClose} />
  const find = async (form: FormData): Promise<void> => {
    const value = textOf(form, 'value')
    const erasure = textOf(form, 'kind') === 'session' ? { session: value } : { subject: value }
    preview.value = { what: erasure, events: await operateApi.countErased(erasure) }
  }
  return (
    <FormDialog
      key="find"
      title="Erase a session or an identity"
      action="Count events"
      onSubmit={find}
      onClose={() => preview.value === null && onClose()} // found: the next dialog is open
    >
      <Choice name="kind" label="Kind" options={kinds} />
      <Field name="value" label="Exact session ID or identity" required />
      <p>Nothing is erased before you confirm the number of events.</p>
    </FormDialog>
  )
}

function Confirm({
  found: { what: erasure, events },
  onErase,
  onClose,
}: { found: Found } & EraseDialogsProps) {
  const isSession = 'session' in erasure
  const value = isSession ? erasure.session : erasure.subject
  return (
    <FormDialog
      key="confirm"
      title="Erase permanently"
      action={events ? `Erase ${counted(events, 'event')}` : 'Erase'}
      danger
      onSubmit={() => onErase(erasure)}
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

/** The summary shown before an erasure. Null: too many events to count in time. */
export function erasureSummary(events: number | null): string {
  if (events === 0)
    return 'No stored event matches. Check the spelling; case matters. Copies of expired events are erased anyway.'
  const matches =
    events === null
      ? 'All matching events are erased. There are too many to count first.'
      : `${counted(events, 'event')} ${events === 1 ? 'is' : 'are'} erased.`
  return `${matches} Related counts and copies in deliveries and samples are erased too.`
}
