/** Settings → System: which Sightglass this is, where it takes events, and what its doctor finds. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { ownAddress } from '../../../app/base-path.ts'
import { Problem } from '../../../components/problem.tsx'
import { useTask } from '../../../components/task.ts'
import { Text } from '../../../components/text.tsx'
import { count } from '../../../text/format.ts'
import { type Diagnosis, operateApi } from '../../../api/operate-api.ts'
import { overview, session } from '../../../app/session.ts'
import { ClockPanel } from './clock-panel.tsx'
import { Moment } from '../../../components/moment.tsx'

export function System() {
  const who = session.value
  if (!who) return null
  return (
    <section class="settings-section">
      <dl class="settings-facts">
        <dt>Version</dt>
        <dd>{who.version}</dd>
        <dt>Ingest address</dt>
        <dd>
          <code>{who.ingestUrl}</code>
        </dd>
        <dt>Dashboard address</dt>
        <dd>
          <code>{ownAddress()}</code>
        </dd>
        <dt>How to run it</dt>
        <dd>
          <a href="/docs/operations" data-native>
            Operations guide
          </a>
        </dd>
        {overview.value && (
          <>
            <dt>Events kept</dt>
            <dd>{count(overview.value.total)}</dd>
          </>
        )}
      </dl>
      {who.account.operator ? (
        <Doctor />
      ) : (
        <p class="muted">What the doctor finds on the machine is for operators of the appliance.</p>
      )}
    </section>
  )
}

const tones = { ok: 'allow', warning: 'block', failure: 'error' } as const

function Doctor() {
  const found = useSignal<Diagnosis | null>(null)
  const { problem, busy, run } = useTask()
  const look = () => run(async () => void (found.value = await operateApi.diagnosis()))
  useEffect(() => void look(), [])
  return (
    <>
      <ClockPanel onConfirmed={() => void look()} />
      <h3>Health</h3>
      {problem.value && <Problem error={problem.value} onRetry={() => void look()} />}
      {found.value && (
        <p>
          {sentence(found.value)} Looked at <Moment iso={found.value.at} />.{' '}
          <button type="button" class="button" aria-disabled={busy.value} onClick={() => void look()}>
            Look again
          </button>
        </p>
      )}
      {found.value && (
        <div class="panel table-panel" tabIndex={0} role="region" aria-label="What the doctor found">
          <table class="key-table doctor-table">
            <tbody>
              {found.value.checks.map((check, index) => (
                <tr key={`${check.id} ${index}`}>
                  <th scope="row">{check.id}</th>
                  <td>
                    <span class={`chip ${tones[check.status]}`}>{check.status}</span>
                  </td>
                  <td>
                    <Text value={check.detail} max={400} />
                    {check.hint !== null && (
                      <p class="muted">
                        <Text value={check.hint} max={400} />
                      </p>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  )
}

function sentence({ checks }: Diagnosis): string {
  const failures = checks.filter((check) => check.status === 'failure').length
  const warnings = checks.filter((check) => check.status === 'warning').length
  if (failures > 0) return `${count(failures)} of ${count(checks.length)} checks failed.`
  if (warnings > 0) return `All is well but for ${count(warnings)} of ${count(checks.length)} checks.`
  return `All ${count(checks.length)} checks are well.`
}
