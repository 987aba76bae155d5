/**
 * The trust that the sessions of detections reached: an agent is detected before it can prove itself, so the trust of
 * the detection alone would read as if none ever did.
 */
import { countsQuery } from '../../query/counts.ts'
import type { Query } from '../../query/query.ts'
import { useQuery } from '../../query/use-query.ts'
import type { DetectTrust } from '../../api/api.ts'
import { Bars } from '../../charts/bars.tsx'
import { shareOf } from '../../charts/change.ts'
import { colourOf } from '../../charts/series.ts'
import { Vial } from '../../components/marks.tsx'
import { count } from '../../text/format.ts'
import { measures } from '../../text/measures.ts'

/** Asked on its own: reading sessions takes longer than counting. */
export const trustQuery = (): Query<DetectTrust> => countsQuery('detect/trust')

const sum = (rows: DetectTrust['rows']): number => rows.reduce((total, row) => total + row.count, 0)

export function provedShare(reached: DetectTrust | null): number | null {
  if (reached === null || reached.isTooMuch) return null
  const proved = reached.rows.filter(({ trust }) => trust === 'verified' || trust === 'linked')
  return shareOf(sum(proved), sum(reached.rows))
}

export function reachedNote(reached: DetectTrust | null, detected: number): string {
  if (reached === null) return 'counting…'
  if (reached.isTooMuch) return 'too many events; choose a shorter range'
  if (reached.complete) return 'of detections, at any time in their session'
  return `based on ${count(sum(reached.rows))} of ${count(detected)} detections`
}

export function TrustBars({ detected }: { detected: number }) {
  const reached = useQuery(trustQuery(), detected).data
  if (reached === null || reached.isTooMuch) return null
  return (
    <Bars
      title="By highest trust in session"
      unit={measures.detections.unit}
      bars={reached.rows.flatMap(({ trust, count: events }, index) =>
        trust === null
          ? []
          : [
              {
                key: trust,
                name: trust,
                mark: <Vial trust={trust} />,
                colour: colourOf(trust, index),
                count: events,
              },
            ],
      )}
      rest={{ names: 0, count: sum(reached.rows.filter(({ trust }) => trust === null)) }}
      restName="unknown trust"
    />
  )
}
