/** Settings, System: version, addresses and, for operators, the health checks of `sightglass doctor`. */
import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { ownAddress } from '../../../app/router.ts'
import { Problem } from '../../../components/problem.tsx'
import { useTask } from '../../../components/problem.tsx'
import { Text } from '../../../components/text.tsx'
import { count, counted } from '../../../text/format.ts'
import { type Diagnosis, operateApi } from '../../../api/operate-api.ts'
import { overview, session } from '../../../app/session.ts'
import { ClockPanel } from './clock-panel.tsx'
import { Moment } from '../../../components/time.tsx'
import { RecordTable } from '../../../components/record-table.tsx'

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
