/** Settings, System: version and addresses; for operators a clock jump, the nodes, and the checks of the doctor. */
import { useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
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
import { refreshWhile } from '../../../query/query.ts'
import { useRecords } from '../../../query/use-query.ts'
import { Nodes } from './nodes.tsx'

export function System() {
  const currentSession = session.value
  if (!currentSession) return null
  return (
    <section class="settings-section">
      <dl class="settings-facts">
        <dt>Version</dt>
        <dd>{currentSession.version}</dd>
        <dt>Ingest URL</dt>
        <dd>
          <code>{currentSession.ingestUrl}</code>
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
          ,{' '}
          <a href="/docs/nodes" data-native>
            several nodes
          </a>
        </dd>
        {overview.value && (
          <>
            <dt>Stored events</dt>
            <dd>{count(overview.value.total)}</dd>
          </>
        )}
      </dl>
      {currentSession.account.operator ? (
        <Doctor />
      ) : (
        <p class="muted">Only operators of the appliance can see health checks.</p>
      )}
    </section>
  )
}

const tones = { ok: 'allow', warning: 'block', failure: 'error' } as const

function Doctor() {
  const {
    data: diagnosis,
    error: problem,
    busy,
    refetch,
  } = useRecords<Diagnosis>({ key: 'doctor', fetch: operateApi.diagnosis })
  return (
    <>
      <ClockPanel onConfirmed={refetch} />
      <Nodes />
      <h3>Health checks</h3>
      {problem.value && <Problem error={problem.value} onRetry={refetch} />}
      {!diagnosis.value && !problem.value && <p class="muted">Checking…</p>}
      {diagnosis.value && (
        <p>
          {summary(diagnosis.value)} Checked <Moment iso={diagnosis.value.at} />.{' '}
          <button type="button" class="button" aria-disabled={busy.value} onClick={refetch}>
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

interface Clock {
  serverTime: string
  hold: ClockView['hold']
}

/** Renames `now`, because a query ignores a change of that field. */
const clockOf = ({ now, hold }: ClockView): Clock => ({ serverTime: now, hold })

/** The work that a clock jump holds back, and the button that confirms the clock. */
function ClockPanel({ onConfirmed }: { onConfirmed: () => void }) {
  const policy = useMemo(() => refreshWhile<Clock>(({ hold }) => hold !== null, refreshMs), [])
  const clock = useRecords<Clock>(
    { key: 'clock', fetch: async (signal) => clockOf(await operateApi.clock(signal)) },
    policy,
  )
  const confirming = useSignal(false)
  const { problem, busy, run } = useTask()
  const confirm = () =>
    run(async () => {
      clock.replace(clockOf(await operateApi.confirmClock()))
      confirming.value = false
      await refreshNotices()
      onConfirmed()
    })
  if (clock.error.value && !confirming.value)
    return <Problem error={clock.error.value} onRetry={clock.refetch} />
  if (!clock.data.value?.hold) return null
  const { serverTime, hold } = clock.data.value
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
            Server time: <strong>{fullTime(Date.parse(serverTime))}</strong>
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
