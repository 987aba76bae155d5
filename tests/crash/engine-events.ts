/** The n-th event of a round, the same for the killed program and for the oracle. */
import type { EventRecord } from '../../db/contract/store.ts'
import { makeEvent, noon } from '../store/make.ts'

export const orgId = 'org_a'

export function crashEvent(round: number, n: number): EventRecord {
  const id = `r${round}-${n}`
  const sessionId = `s${n % 97}`
  const type = n % 3 === 0 ? 'tool.executed' : 'agent.detected'
  const metadata = { plan: `plan-${n % 7}`, page: `/checkout/${n % 500}` }
  const json = JSON.stringify({ id, sessionId, n, metadata })
  return makeEvent(id, { sessionId, type, occurredAtMs: noon + n * 50, json })
}
