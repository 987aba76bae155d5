/** Settings, System: version and addresses; for operators a clock jump and the health checks of the doctor. */
import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { ownAddress } from '../../../app/router.ts'
import { Problem, useTask } from '../../../components/problem.tsx'
import { Text } from '../../../components/text.tsx'
import { count, counted, fullTime } from '../../../text/format.ts'
import { operateApi, type ClockView, type Diagnosis } from '../../../api/operate-api.ts'
import { overview, session } from '../../../app/session.ts'
import { Moment } from '../../../components/time.tsx'
import { RecordTable } from '../../../components/record-table.tsx'
import { Dialog } from '../../../components/dialog.tsx'
import { refreshNotices } from '../../../app/notices.ts'

export function System() {
  const who = session.value
  if (!who) return null
  return (
    <section class="settings-section">
      <dl class="settings-facts">
        <dt>Version</dt>
        <dd>{who.version}</dd>
        <dt>Ingest URL</dt>
        <dd>
          <code>{who.ingestUrl}</code>
        </dd>
        <dt>Dashboard URL</dt>
        <dd>
          <code>{ownAddress()}</code>
        </dd>
        <dt>Documentation</dt>
        <dd>
          <a href="/docs/operations" data-native>
            Operations guide
          </a>
        </dd>
        {overview.value && (
          <>
            <dt>Stored events</dt>
            <dd>{count(overview.value.total)}</dd>
          </>
        )}
      </dl>
      {who.account.operator ? (
        <Doctor />
      ) : (
        <p class="muted">Only operators of the appliance can see health checks.</p>
      )}
    </section>
  )
}

const tones = { ok: 'allow', warning: 'block', failure: 'error' } as const

function Doctor() {
  const diagnosis = useSignal<Diagnosis | null>(null)
  const { problem, busy, run } = useTask()
  const requested = useRef(0)
  const refresh = () => {
    requested.current += 1
    return run(async () => {
      // A task runs once at a time. A refresh during a run, such as after confirming the clock, runs the checks again.
      for (let run = 0; run !== requested.current;) {
        run = requested.current
        diagnosis.value = await operateApi.diagnosis()
      }
    })
  }
  useEffect(() => void refresh(), [])
  return (
    <>
      <ClockPanel onConfirmed={() => void refresh()} />
      <h3>Health checks</h3>
      {problem.value && <Problem error={problem.value} onRetry={() => void refresh()} />}
      {diagnosis.value && (
        <p>
          {summary(diagnosis.value)} Checked <Moment iso={diagnosis.value.at} />.{' '}
          <button type="button" class="button" aria-disabled={busy.value} onClick={() => void refresh()}>
            Refresh
          </button>
        </p>
      )}
      {diagnosis.value && (
        <RecordTable
          label="Health checks"
          class="doctor-table"
          rows={diagnosis.value.checks}
          keyOf={({ id }, index) => `${id} ${index}`}
          columns={[
            { name: 'Check', cell: ({ id }) => id },
            { name: 'State', cell: ({ status }) => <span class={`chip ${tones[status]}`}>{status}</span> },
            {
              name: 'Detail',
              cell: ({ detail, hint }) => (
                <>
                  <Text value={detail} max={400} />
                  {hint !== null && (
                    <p class="muted">
                      <Text value={hint} max={400} />
                    </p>
                  )}
                </>
              ),
            },
          ]}
        />
      )}
    </>
  )
}

function summary({ checks }: Diagnosis): string {
  const failures = checks.filter((check) => check.status === 'failure').length
  const warnings = checks.filter((check) => check.status === 'warning').length
  if (failures > 0) return `${count(failures)} of ${counted(checks.length, 'check')} failed.`
  if (warnings > 0)
    return `${count(warnings)} of ${counted(checks.length, 'check')} ${warnings === 1 ? 'has a warning' : 'have warnings'}.`
  return `All ${count(checks.length)} checks passed.`
}

const refreshMs = 10_000

/** The work that a clock jump holds back, and the button that confirms the clock. */
function ClockPanel({ onConfirmed }: { onConfirmed: () => void }) {
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
