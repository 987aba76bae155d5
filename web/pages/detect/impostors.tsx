/** Impostors: requests that claim to be an agent, with the evidence that contradicts them. */
import { DataTable, type Column } from '../../charts/data-table.tsx'
import { Text } from '../../components/text.tsx'
import { Moment } from '../../components/time.tsx'
import { verdictSentence } from '../../components/verdict.ts'
import { logsHref } from '../../range/filters.tsx'
import { navigate } from '../../app/router.ts'
import { count } from '../../text/format.ts'
import type { Impostor, PeriodView } from '../../api/api.ts'

const sentenceOf = ({ vendor, name, evidence }: Impostor): string =>
  verdictSentence({ vendor, name, verdict: 'contradicted', evidence }) ?? ''

/** Nothing without an impostor. */
export function Impostors({ rows, period }: { rows: Impostor[]; period: PeriodView }) {
  if (rows.length === 0) return null
  const eventsOf = ({ vendor, name }: Impostor): string =>
    logsHref({
      siteIds: period.siteIds,
      since: period.since,
      until: period.until,
      type: 'agent.requested',
      verdict: 'contradicted',
      ...(vendor !== null && { vendor }),
      ...(name !== null && { name }),
    })
  const columns: Column<Impostor>[] = [
    {
      name: 'Claims to be',
      value: ({ name, vendor }) => name ?? vendor ?? '(no name)',
      show: ({ name, vendor }) => (
        <b>
          <Text value={name ?? vendor ?? '(no name)'} max={32} />
        </b>
      ),
    },
    {
      name: 'Requests',
      number: true,
      value: ({ requests }) => requests,
      show: (row) => (
        <a href={eventsOf(row)} title="Open in Logs">
          {count(row.requests)}
        </a>
      ),
    },
    {
      name: 'Evidence',
      value: sentenceOf,
      show: (row) => (
        <span class="impostor-evidence">
          <Text value={sentenceOf(row)} max={260} />
        </span>
      ),
    },
    {
      name: 'Last seen',
      time: true,
      value: ({ lastAt }) => lastAt,
      show: ({ lastAt }) => lastAt !== null && <Moment iso={lastAt} />,
    },
    {
      name: 'Pages',
      about: 'the most frequent pages of the newest requests',
      value: ({ pages }) => pages.map(({ name }) => name).join(' '),
      show: ({ pages }) => (
        <span class="impostor-pages">
          {pages.map(({ name }) => (
            <Text key={name} value={name} max={32} mono />
          ))}
        </span>
      ),
    },
  ]
  return (
    <DataTable
      title="Impostors"
      about="requests that are not from the agent they name"
      csv={{ page: 'detect', table: 'impostors', period }}
      columns={columns}
      rows={rows}
      keyOf={({ vendor, name }) => JSON.stringify([vendor, name])}
      sortBy="Requests"
      onOpen={(row) => navigate(eventsOf(row))}
    />
  )
}
