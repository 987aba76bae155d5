/** Columns that breakdown tables share: accepted and blocked counts, and the comparison with the period before. */
import type { Cut, CutRow, Tally } from '../api/api.ts'
import { measures } from '../text/measures.ts'
import { changeOf, percent, shareOf } from './change.ts'
import { changeCell, percentCell } from './csv.ts'
import type { Column } from './data-table.tsx'
import { ChangeMark } from './headlines.tsx'

/** The previous count and the change since: sorted by amount, shown in percent on the page and in CSV. */
export function changeColumns<Row extends { count: number; before: number }>(): Column<Row>[] {
  return [
    { name: 'Before', number: true, value: (row) => row.before },
    {
      name: 'Change',
      number: true,
      unit: '%',
      value: (row) => row.count - row.before,
      csv: (row) => changeCell(row.count, row.before),
      show: (row) => {
        const change = changeOf(row.count, row.before)
        return change.text === 'new' ? 'new' : <ChangeMark change={change} />
      },
    },
  ]
}

/** A share from 0 to 1. */
export function shareColumn<Row>(name: string, share: (row: Row) => number | null): Column<Row> {
  return {
    name,
    number: true,
    unit: '%',
    value: share,
    csv: (row) => percentCell(share(row)),
    show: (row) => percent(share(row)),
  }
}

const outcomeOf = ({ outcomes }: CutRow, outcome: string): number =>
  Object.hasOwn(outcomes, outcome) ? (outcomes[outcome] ?? 0) : 0

/** Successful and failed events, and the share of successes. */
export function acceptedColumns(): Column<CutRow>[] {
  const failed = (row: CutRow): number => row.count - outcomeOf(row, 'success')
  return [
    { name: measures.accepted.name, number: true, value: (row) => outcomeOf(row, 'success') },
    { name: measures.notAccepted.name, number: true, value: failed },
    shareColumn(`Share ${measures.notAccepted.name.toLowerCase()}`, (row) => shareOf(failed(row), row.count)),
  ]
}

/** Events with the outcome blocked, whatever the decision was. */
export const blockedColumns: Column<CutRow>[] = [
  { name: measures.blocked.name, number: true, value: (row) => outcomeOf(row, 'blocked') },
  shareColumn(`Share ${measures.blocked.name.toLowerCase()}`, (row) =>
    shareOf(outcomeOf(row, 'blocked'), row.count),
  ),
]

/** A row of a table of values: a value, the rest beyond 1,000 values per hour, or the events without the field. */
export interface ValueRow extends CutRow {
  kind: 'value' | 'others' | 'missing'
}

/** All rows of a breakdown and one for the rest, so that the column adds up to the page's total. */
export function valueRows(cut: Cut, whole: Tally): ValueRow[] {
  const rows: ValueRow[] = cut.rows
    .filter((row) => row.count > 0 || row.before > 0)
    .map((row) => ({ ...row, kind: row.value === null ? 'others' : 'value' }))
  const sum = (of: 'count' | 'before') => rows.reduce((all, row) => all + row[of], cut.more?.[of] ?? 0)
  const left = Math.max(0, whole.count - sum('count'))
  if (left === 0) return rows
  const outcomes: CutRow['outcomes'] = {}
  // The outcomes of values without a row are not known per value.
  if (cut.more === null) {
    for (const [outcome, tally] of Object.entries(whole.outcomes)) {
      const rest = rows.reduce((all, row) => all - outcomeOf(row, outcome), tally.count)
      if (rest > 0) outcomes[outcome] = rest
    }
  }
  const before = Math.max(0, whole.before - sum('before'))
  return [...rows, { kind: 'missing', value: null, count: left, before, outcomes, steps: null }]
}

/** The name of a row of `valueRows`, also in CSV: "(no vendor)". */
export function valueName({ kind, value }: Pick<ValueRow, 'kind' | 'value'>, noun: string): string {
  return kind === 'value' ? (value ?? '') : kind === 'others' ? '(others)' : `(no ${noun})`
}
