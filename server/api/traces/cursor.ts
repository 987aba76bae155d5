/**
 * The opaque cursor of GET /v1/traces: where the walk stands, with its filters and the ceiling of arrivals it covers.
 */
import type { EventFilter, EventPosition } from '../../../db/contract/store.ts'
import type { Seal } from '../../http/cursor-cipher.ts'
import { invalidQuery } from '../../http/query.ts'

interface Walk {
  orgId: string
  filter: EventFilter
  before: EventPosition
  ceilingSeq: number
}

const purpose = 'traces-cursor'

export function closeCursor(seal: Seal, { orgId, filter, before, ceilingSeq }: Walk): string {
  return seal.close(purpose, [orgId, filter, before.occurredAtMs, before.seq, ceilingSeq])
}

/**
 * Opens a cursor for `orgId`. `asked` is the filter given beside it: empty goes on with the cursor's own, an equal one
 * too; another one, another organization or a text that is not ours is 400 (contract §6).
 */
export function openCursor(seal: Seal, text: string, orgId: string, asked: EventFilter): Walk {
  const opened = seal.open(purpose, text) as [string, EventFilter, number, number, number] | null
  if (!opened || opened[0] !== orgId) throw invalidQuery('cursor', 'This cursor is not one of ours.')
  const [, filter, occurredAtMs, seq, ceilingSeq] = opened
  if (Object.keys(asked).length > 0 && fingerprint(asked) !== fingerprint(filter)) {
    throw invalidQuery(
      'cursor',
      'This cursor belongs to a walk with other filters; send it alone or with the same ones.',
    )
  }
  return { orgId, filter, before: { occurredAtMs, seq }, ceilingSeq }
}

function fingerprint(filter: EventFilter): string {
  return JSON.stringify(Object.entries(filter).sort(([a], [b]) => (a < b ? -1 : 1)))
}
