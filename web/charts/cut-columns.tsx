/** Columns that every table of a cut has: what went well and what did not, and the comparison with the time before. */
import type { CutRow } from '../api.ts'
import { changeOf, percent, shareOf } from './change.ts'
import type { Column } from './data-table.tsx'
import { ChangeMark } from './headlines.tsx'

export const changeColumns: Column<CutRow>[] = [
  { name: 'Before', number: true, value: (row) => row.before },
  {
    name: 'Change',
    number: true,
    value: (row) => row.count - row.before,
    show: (row) => {
      const change = changeOf(row.count, row.before)
      return change.text === 'new' ? 'new' : <ChangeMark change={change} />
    },
  },
]

const succeeded = (row: CutRow): number => row.outcomes['success'] ?? 0

/** How many ended in success, how many did not, and what share that is. */
export function refusalColumns(good: string, bad: string): Column<CutRow>[] {
  return [
    { name: good, number: true, value: succeeded },
    { name: bad, number: true, value: (row) => row.count - succeeded(row) },
    {
      name: 'Share',
      number: true,
      value: (row) => {
        const share = shareOf(row.count - succeeded(row), row.count)
        return share === null ? null : Math.round(share * 10_000) / 10_000
      },
      show: (row) => percent(shareOf(row.count - succeeded(row), row.count)),
    },
  ]
}
