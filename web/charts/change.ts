/** How a number compares with the period before, without false precision. */
import { count } from '../text/format.ts'

export interface Change {
  arrow: '▲' | '▼' | ''
  text: string
}

/** "▲ 18 %"; "new" without a previous value; "12×" for large factors. */
export function changeOf(now: number, before: number): Change {
  if (now === before) return { arrow: '', text: now === 0 ? '' : 'no change' }
  if (before === 0) return { arrow: '', text: 'new' }
  const arrow = now > before ? '▲' : '▼'
  if (now >= 11 * before) return { arrow, text: `${count(Math.round(now / before))}×` }
  const percent = Math.round((Math.abs(now - before) / before) * 100)
  return { arrow, text: percent === 0 ? 'under 1 %' : `${percent} %` }
}

/** The change of a share from 0 to 1: "▲ 3 pts", computed from the rounded percentages. Null: no share. */
export function pointsOf(now: number | null, before: number | null): Change {
  if (now === null || before === null) return { arrow: '', text: '' }
  const points = Math.round(now * 100) - Math.round(before * 100)
  if (points === 0) return { arrow: '', text: 'no change' }
  return {
    arrow: points > 0 ? '▲' : '▼',
    text: `${Math.abs(points)} ${points * points === 1 ? 'pt' : 'pts'}`,
  }
}

export function shareOf(part: number, whole: number): number | null {
  return whole === 0 ? null : part / whole
}

/** "61 %"; "under 1 %" and "over 99 %" where rounding would mislead; "–" for a share of nothing. */
export function percent(share: number | null): string {
  if (share === null) return '–'
  if (share > 0 && share < 0.005) return 'under 1 %'
  if (share < 1 && share > 0.995) return 'over 99 %'
  return `${Math.round(share * 100)} %`
}
