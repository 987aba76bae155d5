/** Settings → Data and retention: what is kept, how long, and how to take it along. */
import { useEffect } from 'preact/hooks'
import { RetentionLimits } from './retention.tsx'
import { Erase } from './erase.tsx'
import { Text } from '../../../components/text.tsx'
import { count } from '../../../text/format.ts'
import { overview, refreshOverview } from '../../../app/session.ts'

const shownMax = 30

export function Data() {
  useEffect(() => void refreshOverview(), [])
  const kept = overview.value
  const types = Object.entries(kept?.byType ?? {}).sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))
  return (
    <section class="settings-section">
      <p class="about">
        Events are kept as long as is set here. Counts by hour are kept for 400 days, delivered webhooks for 7
        days, dead letters for 90 days, the audit log for ever.
      </p>
      <RetentionLimits />
      {kept !== null && (
        <dl class="settings-facts">
          <dt>Events kept</dt>
          <dd>{count(kept.total)}</dd>
          <dt>Types</dt>
          <dd>{count(types.length)}</dd>
        </dl>
      )}
      {types.length > 0 && (
        <div class="panel table-panel" tabIndex={0} role="region" aria-label="Events by type">
          <table class="key-table">
            <thead>
              <tr>
                <th scope="col">Type</th>
                <th scope="col">Kept events</th>
              </tr>
            </thead>
            <tbody>
              {types.slice(0, shownMax).map(([type, events]) => (
                <tr key={type}>
                  <th scope="row">
                    <a href={`/logs?type=${encodeURIComponent(type)}`}>
                      <Text value={type} max={64} />
                    </a>
                  </th>
                  <td>{count(events)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {types.length > shownMax && <p class="muted">And {count(types.length - shownMax)} more types.</p>}
      <p>
        To take everything along, run <code>sightglass export traces --org …</code> on the machine, or filter{' '}
        <a href="/logs">Logs</a> and export what is shown.
      </p>
      <Erase />
    </section>
  )
}
