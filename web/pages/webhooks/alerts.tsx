/** What rules found: alerts that are open, and those that are over. */
import { type Column, DataTable } from '../../charts/data-table.tsx'
import { now } from '../../clock.ts'
import { Text } from '../../components/text.tsx'
import { eventTime, fullTime, utcTime } from '../../format.ts'
import type { Incident } from '../../webhook-api.ts'

export function Alerts({ incidents }: { incidents: Incident[] }) {
  if (incidents.length === 0) return null
  const open = incidents.filter(({ resolvedAt }) => resolvedAt === null).length
  return (
    <DataTable
      title="Alerts"
      about={open === 0 ? 'none is open' : `${open} open`}
      csv={{ page: 'webhooks', table: 'alerts' }}
      columns={columns}
      rows={incidents}
      keyOf={({ id }) => id}
      sortBy="State"
      ascending
    />
  )
}

const columns: Column<Incident>[] = [
  {
    name: 'State',
    value: ({ resolvedAt }) => (resolvedAt === null ? 'open' : 'over'),
    show: ({ resolvedAt }) =>
      resolvedAt === null ? <span class="chip block">open</span> : <span class="chip plain">over</span>,
  },
  {
    name: 'What',
    value: ({ message }) => message,
    show: ({ message }) => <Text value={message} max={160} />,
  },
  {
    name: 'Opened',
    time: true,
    value: ({ openedAt }) => openedAt,
    show: ({ openedAt }) => <Time iso={openedAt} />,
  },
  {
    name: 'Resolved',
    time: true,
    value: ({ resolvedAt }) => resolvedAt,
    show: ({ resolvedAt }) => resolvedAt !== null && <Time iso={resolvedAt} />,
  },
]

function Time({ iso }: { iso: string }) {
  const ms = Date.parse(iso)
  return (
    <time dateTime={iso} title={`${fullTime(ms)}\n${utcTime(ms)}`}>
      {eventTime(ms, now())}
    </time>
  )
}
