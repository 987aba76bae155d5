/** Erasing what belongs to one session or one identity, for good: counted first, then watched until it is done. */
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

/** While one is at work; no stream tells of it. */
const lookMs = 500

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
    const timer = setInterval(() => void load(), lookMs)
    return () => {
      clearInterval(timer)
      void refreshOverview() // fewer events are kept now
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
        {isLost.value && <p>The appliance was restarted before all of it was erased. Erase it again.</p>}
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
        Erasing {nameOf(running.by)}: {counted(running.events, 'event')} so far. It goes on when you leave
        this page.
      </p>
    )
  }
  if (!last) return null
  const { erased, problem } = last
  return (
    <>
      <p>
        {erased
          ? `Erased ${counted(erased.events, 'event')}, ${counted(erased.deliveries, 'delivery', 'deliveries')} and ` +
            `${counted(erased.samples, 'sample')} of ${nameOf(last.by)}`
          : `Erasing ${nameOf(last.by)} was cut short, some of it may still be here: ${problem}. Erase it again`}
        , <Moment iso={last.endedAt} />.
      </p>
      {erased && <p class="muted">Out of reach: {beyond.join('; ')}.</p>}
    </>
  )
}

const nameOf = (by: 'session' | 'subject'): string => (by === 'session' ? 'a session' : 'an identity')
