/** Erases the data of one session or identity: the button, its dialogs and the progress. Owners only. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { Problem } from '../../../components/problem.tsx'
import { useTask } from '../../../components/task.ts'
import { counted } from '../../../text/format.ts'
import { type Erasure, type Erasures, operateApi } from '../../../api/operate-api.ts'
import { refreshOverview, session } from '../../../app/session.ts'
import { EraseDialogs } from './erase-dialogs.tsx'
import { hasVanished } from './erase-model.ts'
import { Moment } from '../../../components/moment.tsx'

/** Progress is polled because no stream reports it. */
const pollMs = 500

export function Erase() {
  return session.value?.role === 'owner' ? <OwnersErase /> : null
}

function OwnersErase() {
  const known = useSignal<Erasures | null>(null)
  const asking = useSignal(false)
  const { problem, run } = useTask()
  const isLost = useSignal(false)
  const load = () =>
    run(async () => {
      const next = await operateApi.erasures()
      isLost.value = isLost.value || hasVanished(known.value, next)
      known.value = next
    })
  const isRunning = known.value?.running != null
  useEffect(() => void load(), [])
  useEffect(() => {
    if (!isRunning) return undefined
    const timer = setInterval(() => void load(), pollMs)
    return () => {
      clearInterval(timer)
      void refreshOverview() // fewer events are stored now
    }
  }, [isRunning])
  const erase = async (what: Erasure): Promise<void> => {
    known.value = await operateApi.erase(what)
    isLost.value = false
  }
  return (
    <>
      <button
        type="button"
        class="button"
        aria-haspopup="dialog"
        aria-disabled={isRunning}
        onClick={() => isRunning || (asking.value = true)}
      >
        Erase a session or an identity
      </button>
      {problem.value && <Problem error={problem.value} onRetry={() => void load()} />}
      <div role="status">
        {isLost.value && <p>The server restarted before the erasure finished. Run it again.</p>}
        {known.value && <State of={known.value} />}
      </div>
      {asking.value && <EraseDialogs onErase={erase} onClose={() => (asking.value = false)} />}
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

const nameOf = (by: 'session' | 'subject'): string => (by === 'session' ? 'a session' : 'an identity')
