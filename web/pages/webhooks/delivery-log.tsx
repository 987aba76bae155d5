/** The log of deliveries: filters by state and endpoint, the table, and older pages. */
import { type Delivery, type DeliveryFilter, type DeliveryStatus, webhookApi } from '../../api/webhook-api.ts'
import { now } from '../../app/clock.ts'
import { navigate, place, withQuery } from '../../app/router.ts'
import { type Column, DataTable, everyRow } from '../../charts/data-table.tsx'
import { Text } from '../../components/text.tsx'
import { counted, eventTime, fullTime, utcTime } from '../../text/format.ts'
import { statusLabels, statusTones, waitLabel } from './labels.ts'
import type { Shown } from './model.ts'

const filters: [DeliveryStatus | null, string][] = [
  [null, 'All'],
  ['pending', 'Pending'],
  ['delivered', 'Delivered'],
  ['dead_letter', 'Dead letters'],
]

function set(changes: { [name: string]: string[] }): void {
  const currentPlace = place.peek()
  navigate(currentPlace.path + withQuery(currentPlace.search, changes))
}

/** `endpointName`: the name of the filtered endpoint. */
function Filters({ filter, of: endpointName }: { filter: DeliveryFilter; of: string | null }) {
  return (
    <div class="log-filters" role="group" aria-label="Filters">
      {filters.map(([status, label]) => (
        <button
          type="button"
          key={label}
          class="button choice"
          aria-pressed={filter.status === status}
          onClick={() => set({ status: status === null ? [] : [status] })}
        >
          {label}
        </button>
      ))}
      {endpointName !== null && (
        <button type="button" class="button" onClick={() => set({ endpoint: [] })}>
          <span class="visually-hidden">Remove filter </span>
          endpoint{' '}
          <b>
            <Text value={endpointName} max={40} />
          </b>
          <span aria-hidden="true">×</span>
        </button>
      )}
    </div>
  )
}

export function DeliveryLog({
  shown,
  hasOlder,
  onOlder,
}: {
  shown: Shown
  hasOlder: boolean
  onOlder: () => void
}) {
  const { filter, deliveries, endpoints } = shown
  const names = new Map(endpoints.map((endpoint) => [endpoint.id, endpoint.label || endpoint.url]))
  const isFiltered = filter.status !== null || filter.endpointId !== null
  const endpointName = filter.endpointId === null ? null : (names.get(filter.endpointId) ?? filter.endpointId)
  return (
    <>
      {(isFiltered || deliveries.length > 0) && <Filters filter={filter} of={endpointName} />}
      <DataTable
        title="Deliveries"
        about={
          deliveries.length > 0 &&
          `${hasOlder ? 'Newest ' : ''}${counted(deliveries.length, 'delivery', 'deliveries')}`
        }
        csv={{
          page: 'webhooks',
          table: 'deliveries',
          all: (signal) =>
            everyRow(async (cursor) => {
              const page = await webhookApi.deliveries(filter, cursor, signal)
              return { rows: page.deliveries, next: page.nextCursor }
            }),
        }}
        columns={columnsOf(names)}
        rows={deliveries}
        keyOf={(delivery) => delivery.id}
        sortBy="Scheduled"
        onOpen={(delivery) => set({ delivery: [delivery.id] })}
        empty={
          isFiltered ? 'No deliveries match these filters.' : 'No deliveries yet. Send a test to create one.'
        }
      />
      {hasOlder && (
        <p>
          <button type="button" class="button" onClick={onOlder}>
            Load older
          </button>
        </p>
      )}
    </>
  )
}

function columnsOf(names: Map<string, string>): Column<Delivery>[] {
  const nowMs = now()
  const time = (iso: string) => (
    <time dateTime={iso} title={`${fullTime(Date.parse(iso))}\n${utcTime(Date.parse(iso))}`}>
      {eventTime(Date.parse(iso), nowMs)}
    </time>
  )
  return [
    {
      name: 'Scheduled',
      time: true,
      value: (delivery) => delivery.scheduledAt,
      show: (delivery) => (
        <a class="mono" href={place.value.path + withQuery(place.value.search, { delivery: [delivery.id] })}>
          {time(delivery.scheduledAt)}
        </a>
      ),
    },
    {
      name: 'State',
      value: (delivery) => statusLabels[delivery.status],
      show: (delivery) => (
        <span class={`chip ${statusTones[delivery.status]}`}>{statusLabels[delivery.status]}</span>
      ),
    },
    {
      name: 'Destination',
      value: (delivery) => names.get(delivery.endpointId ?? '') ?? delivery.url,
      show: (delivery) => <Text value={names.get(delivery.endpointId ?? '') ?? delivery.url} max={44} />,
    },
    { name: 'Attempts', value: (delivery) => delivery.attempts, number: true },
    {
      name: 'Response',
      value: (delivery) => delivery.lastStatus,
      show: (delivery) => delivery.lastStatus ?? '',
      number: true,
    },
    {
      name: 'Waiting',
      value: (delivery) => waitLabel(delivery, nowMs),
      show: (delivery) => <Text value={waitLabel(delivery, nowMs)} max={160} />,
    },
    {
      name: 'Last error',
      value: (delivery) => delivery.lastError,
      show: (delivery) => delivery.lastError !== null && <Text value={delivery.lastError} max={40} />,
    },
  ]
}
