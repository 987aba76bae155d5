/** Stores events whose verdicts the appliance vouches for, as readers of access logs do. */
import { expect } from 'bun:test'
import { vouchFor } from '../../server/evidence/judged-record.ts'
import { importKeyId } from '../../server/ids.ts'
import { checkEvent } from '../../server/ingest/check-event.ts'
import type { TestEvent } from './events.ts'
import type { TestServer } from './server.ts'

export async function storeVouched({ store, org, clock }: TestServer, events: TestEvent[]): Promise<void> {
  const records = events.map((event) => {
    const record = checkEvent(event, [])!
    record.json = JSON.stringify(event)
    vouchFor(record)
    return record
  })
  const batch = { orgId: org.id, keyId: importKeyId, door: 'access-log' as const, receivedAtMs: clock.now() }
  expect(await store.events.append({ ...batch, events: records })).toMatchObject({ accepted: events.length })
}
