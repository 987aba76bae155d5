/** Settings, Data and retention: limits, stored events by type, export and erasure. */
import { useEffect } from 'preact/hooks'
import { RetentionLimits } from './retention.tsx'
import { Erase } from './erase.tsx'
import { Text } from '../../../components/text.tsx'
import { RecordTable } from '../../../components/record-table.tsx'
import { count, counted } from '../../../text/format.ts'
import { overview, refreshOverview } from '../../../app/session.ts'

const shownMax = 30

export function Data() {
  useEffect(() => void refreshOverview(), [])
  const stored = overview.value
  const types = Object.entries(stored?.byType ?? {}).sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))
  return (
    <section class="settings-section">
      <p class="about">
        Events beyond these limits are deleted. Hourly counts are stored for 400 days, delivered webhooks for
        7 days, dead letters for 90 days.
      </p>
      <RetentionLimits />
      {stored !== null && (
        <dl class="settings-facts">
          <dt>Stored events</dt>
          <dd>{count(stored.total)}</dd>
          <dt>Event types</dt>
          <dd>{count(types.length)}</dd>
        </dl>
      )}
      {types.length > 0 && (
        <RecordTable
          label="Events by type"
          rows={types.slice(0, shownMax)}
          keyOf={([type]) => type}
          columns={[
            {
              name: 'Type',
              cell: ([type]) => (
                <a href={`/logs?type=${encodeURIComponent(type)}`}>
                  <Text value={type} max={64} />
                </a>
              ),
            },
            { name: 'Events', number: true, cell: ([, events]) => count(events) },
          ]}
        />
      )}
      {types.length > shownMax && (
        <p class="muted">{counted(types.length - shownMax, 'more type')} not shown.</p>
      )}
      <p>
        To export all events, run <code>sightglass export traces --org SLUG</code> on the server. To export
        some of them, filter <a href="/logs">Logs</a> and export the result.
      </p>
      <Erase />
    </section>
  )
}
