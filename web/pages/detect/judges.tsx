/** Whose word verdicts are: from what a key reported, of senders, and those without a recorded judge. */
import { KeyName } from '../../components/provenance.tsx'
import { filterHref, filtersOf, logsHref, type LogsFilter } from '../../range/filters.tsx'
import { query } from '../../app/router.ts'
import { count, counted, dayName } from '../../text/format.ts'
import type { ComponentChildren } from 'preact'
import type { DetectRequests, JudgementCount } from '../../api/api.ts'

const shownMax = 4

/** Nothing where the appliance saw and judged everything itself. */
export function Judges({ found, of }: { found: DetectRequests; of: LogsFilter }) {
  const { judgements, unjudged } = found
  const shown = judgements.filter((row) => row.count > 0)
  const observed = shown.filter(
    ({ judgedBy, verdict, by }) => judgedBy === 'appliance' && verdict === 'verified' && by !== 'appliance',
  )
  const reported = shown.filter(({ judgedBy }) => judgedBy === 'sender')
  if (observed.length + reported.length === 0 && unjudged === null) return null
  return (
    <ul class="judges muted">
      {observed.length > 0 && <Observed rows={observed} of={of} />}
      {reported.length > 0 && <Reported rows={reported} of={of} />}
      {unjudged !== null && (
        <li>
          Judge not recorded
          {unjudged.before !== null && ` before ${dayName(Date.parse(unjudged.before))}`}:{' '}
          {counted(unjudged.count, 'verdict')}, counted as before.
        </li>
      )}
    </ul>
  )
}

function Observed({ rows, of }: { rows: JudgementCount[]; of: LogsFilter }) {
  const own = { name: 'observedBy', value: 'appliance' }
  const isOwn = filtersOf(query.value).some(({ name }) => name === own.name)
  return (
    <li>
      Of the verified,{' '}
      <Rows rows={rows}>
        {(row) => (
          <>
            <a
              href={logsHref({ ...of, verdict: 'verified', ...(row.by !== null && { observedBy: row.by }) })}
            >
              {count(row.count)}
            </a>{' '}
            from addresses that <Behind row={row} /> reported
          </>
        )}
      </Rows>
      . {!isOwn && <a href={filterHref(own)}>Exclude reported</a>}
    </li>
  )
}

function Reported({ rows, of }: { rows: JudgementCount[]; of: LogsFilter }) {
  return (
    <li>
      Reported by senders, not checked and not counted above:{' '}
      <Rows rows={rows}>
        {(row) => (
          <>
            <a href={reportedHref(row, of)}>
              {count(row.count)} {row.verdict ?? 'with another word'}
            </a>{' '}
            by <Behind row={row} />
          </>
        )}
      </Rows>
      .
    </li>
  )
}

function reportedHref({ verdict, by }: JudgementCount, of: LogsFilter): string {
  return logsHref({
    ...of,
    ...(verdict !== null && { verdict }),
    judgedBy: 'sender',
    ...(by !== null && { key: by }),
  })
}

function Behind({ row: { by, label } }: { row: JudgementCount }) {
  return by === null ? <>other keys</> : <KeyName id={by} label={label} />
}

/** The first rows, and how many more there are. */
function Rows(props: { rows: JudgementCount[]; children: (row: JudgementCount) => ComponentChildren }) {
  const rows = props.rows.slice(0, shownMax)
  const left = props.rows.slice(shownMax)
  return (
    <>
      {rows.map((row, index) => (
        <span key={`${row.verdict} ${row.by}`}>
          {index > 0 && ', '}
          {props.children(row)}
        </span>
      ))}
      {left.length > 0 &&
        `, and ${counted(
          left.reduce((sum, row) => sum + row.count, 0),
          'more request',
        )}`}
    </>
  )
}
