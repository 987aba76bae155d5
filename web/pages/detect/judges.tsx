/** Whose word verdicts are: from what a key reported, of senders, and those without a recorded judge. */
import { KeyName } from '../../components/provenance.tsx'
import { filterHref, filtersOf, logsHref, type LogsFilter } from '../../range/filters.tsx'
import { query } from '../../app/router.ts'
import { count, counted, dayName } from '../../text/format.ts'
import type { ComponentChildren } from 'preact'
import type { DetectRequests, JudgementCount } from '../../api/api.ts'

const shownMax = 4

/** Nothing where the appliance saw and judged everything itself. */
export function Judges({ found: requests, of: scope }: { found: DetectRequests; of: LogsFilter }) {
  const { judgements, unjudged } = requests
  const shown = judgements.filter((row) => row.count > 0)
  const observed = shown.filter(
    ({ judgedBy, verdict, by: observerId }) =>
      judgedBy === 'appliance' && verdict === 'verified' && observerId !== 'appliance',
  )
  const reported = shown.filter(({ judgedBy }) => judgedBy === 'sender')
  if (observed.length + reported.length === 0 && unjudged === null) return null
  return (
    <ul class="judges muted">
      {observed.length > 0 && <Observed rows={observed} of={scope} />}
      {reported.length > 0 && <Reported rows={reported} of={scope} />}
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

function Observed({ rows, of: scope }: { rows: JudgementCount[]; of: LogsFilter }) {
  const applianceFilter = { name: 'observedBy', value: 'appliance' }
  const isOwn = filtersOf(query.value).some(({ name }) => name === applianceFilter.name)
  return (
    <li>
      Of the verified,{' '}
      <Rows rows={rows}>
        {(row) => (
          <>
            <a
              href={logsHref({
                ...scope,
                verdict: 'verified',
                ...(row.by !== null && { observedBy: row.by }),
              })}
            >
              {count(row.count)}
            </a>{' '}
            from addresses that <Behind row={row} /> reported
          </>
        )}
      </Rows>
      . {!isOwn && <a href={filterHref(applianceFilter)}>Exclude reported</a>}
    </li>
  )
}

function Reported({ rows, of: scope }: { rows: JudgementCount[]; of: LogsFilter }) {
  return (
    <li>
      Reported by senders, not checked and not counted above:{' '}
      <Rows rows={rows}>
        {(row) => (
          <>
            <a href={reportedHref(row, scope)}>
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

function reportedHref({ verdict, by: keyId }: JudgementCount, scope: LogsFilter): string {
  return logsHref({
    ...scope,
    ...(verdict !== null && { verdict }),
    judgedBy: 'sender',
    ...(keyId !== null && { key: keyId }),
  })
}

function Behind({ row: { by: keyId, label } }: { row: JudgementCount }) {
  return keyId === null ? <>other keys</> : <KeyName id={keyId} label={label} />
}

/** The first rows, and how many more there are. */
function Rows(props: { rows: JudgementCount[]; children: (row: JudgementCount) => ComponentChildren }) {
  const rows = props.rows.slice(0, shownMax)
  const remainingRows = props.rows.slice(shownMax)
  return (
    <>
      {rows.map((row, index) => (
        <span key={`${row.verdict} ${row.by}`}>
          {index > 0 && ', '}
          {props.children(row)}
        </span>
      ))}
      {remainingRows.length > 0 &&
        `, and ${counted(
          remainingRows.reduce((sum, row) => sum + row.count, 0),
          'more request',
        )}`}
    </>
  )
}
