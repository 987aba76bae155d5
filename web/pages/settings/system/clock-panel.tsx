/** Settings, System, for operators: shows what a clock jump holds back, and the button that confirms the clock. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { Dialog } from '../../../components/dialog.tsx'
import { Problem } from '../../../components/problem.tsx'
import { useTask } from '../../../components/problem.tsx'
import { Text } from '../../../components/text.tsx'
import { fullTime } from '../../../text/format.ts'
import { refreshNotices } from '../../../app/notices.ts'
import { type ClockView, operateApi } from '../../../api/operate-api.ts'

const refreshMs = 10_000

export function ClockPanel({ onConfirmed }: { onConfirmed: () => void }) {
  const view = useSignal<ClockView | null>(null)
  const confirming = useSignal(false)
  const { problem, busy, run } = useTask()
  const load = () => run(async () => void (view.value = await operateApi.clock()))
  const isHeld = view.value !== null && view.value.hold !== null
  useEffect(() => void load(), [])
  useEffect(() => {
    if (!isHeld) return undefined
    const timer = setInterval(() => void load(), refreshMs)
    return () => clearInterval(timer)
  }, [isHeld])
  const confirm = () =>
    run(async () => {
      view.value = await operateApi.confirmClock()
      confirming.value = false
      await refreshNotices()
      onConfirmed()
    })
  if (problem.value && !confirming.value) return <Problem error={problem.value} onRetry={() => void load()} />
  if (view.value === null || view.value.hold === null) return null
  const { now, hold } = view.value
  return (
    <div class="panel clock-panel" role="alert">
      <h3>The clock jumped</h3>
      <p>
        <Text value={hold.message} max={400} />
      </p>
      <p>
        <button type="button" class="button primary" onClick={() => (confirming.value = true)}>
          Confirm clock
        </button>
      </p>
      {confirming.value && (
        <Dialog title="Confirm clock" onClose={() => (confirming.value = false)}>
          <p>
            Server time: <strong>{fullTime(Date.parse(now))}</strong>
          </p>
          <p>
            Confirm only if this time is correct. Retention then deletes events beyond your limits by this
            clock. This cannot be undone.
          </p>
          {problem.value && <Problem error={problem.value} />}
          <div class="dialog-foot">
            <button type="button" class="button" data-first-focus onClick={() => (confirming.value = false)}>
              Cancel
            </button>
            <button
              type="button"
              class="button danger"
              aria-disabled={busy.value}
              onClick={() => void confirm()}
            >
              Confirm clock
            </button>
          </div>
        </Dialog>
      )}
    </div>
  )
}
