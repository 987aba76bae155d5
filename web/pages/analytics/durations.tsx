/** How long tool calls took over the range: asked on its own, because reading sketches takes longer than counting. */
import { countsQuery } from '../../query/counts.ts'
import { useQuery } from '../../query/use-query.ts'
import { ChartPanel } from '../../charts/chart-panel.tsx'
import type { Series } from '../../charts/series.ts'
import { Problem } from '../../components/problem.tsx'
import { counted, duration } from '../../text/format.ts'
import { query } from '../../app/router.ts'
import { rangeParams, choiceOf } from '../../range/range.ts'

const quantiles = [
  { name: 'p50', of: 'p50Ms', colour: 'series-1' },
  { name: 'p95', of: 'p95Ms', colour: 'series-2' },
] as const

/** `calls` changes when tools were called: then it is asked anew. */
export function Durations({ calls }: { calls: number }) {
  // Durations know no filters: while those of the address are on their way, this is still drawn.
  const params = rangeParams(choiceOf(query.value))
  const { data: found, error: problem } = useQuery(countsQuery('analytics/durations', params), calls)
  if (problem) return <Problem error={problem} />
  if (!found || found.whole === null) return null
  const { period, whole, steps } = found
  const series = quantiles.map(({ name, of, colour }): Series => {
    const counts = steps.map((step) => step?.[of] ?? Number.NaN)
    return { name: `${name}, ${duration(whole[of])} overall`, value: null, colour, counts }
  })
  return (
    <ChartPanel
      what="Tool call duration"
      period={period}
      divisions={[{ name: 'quantile', series, filterOf: () => ({}) }]}
      filter={{ type: 'tool.executed' }}
      showValue={duration}
      note={`${counted(whole.count, 'call')}, accurate to 2 %`}
    />
  )
}
