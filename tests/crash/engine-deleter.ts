/** Program of `deletion-round.ts`: appends, expires, erases and releases pages until it is killed. */
import { openStore } from '../../db/open.ts'
import type { EraseCursor, EraseResult } from '../../db/contract/store.ts'
import { makeAudit, makeBatch, noon } from '../store/make.ts'
import { crashEvent, orgId } from './engine-events.ts'
import { batchEvents, batchesKept, receivedAtMs } from './engine-deleted.ts'

const [folder = '', round = '0'] = Bun.argv.slice(2)
const store = await openStore({ folder, now: noon })
let arrivedAtMs = receivedAtMs(Number(round))

async function append(): Promise<void> {
  for (let first = 0; ; first += batchEvents) {
    const events = Array.from({ length: batchEvents }, (_, n) => crashEvent(Number(round), first + n))
    await store.events.append({ ...makeBatch(orgId, events), receivedAtMs: ++arrivedAtMs })
    process.stdout.write(`${first}\n`)
  }
}

function sayTaken(events: number): void {
  if (events > 0) process.stdout.write(`taken ${events}\n`)
}

async function expire(): Promise<void> {
  for (;;) {
    const { events } = await store.events.expire({ orgId, receivedBeforeMs: arrivedAtMs - batchesKept })
    sayTaken(events)
    await store.retention.release()
    await Bun.sleep(5)
  }
}

async function erase(): Promise<void> {
  for (let session = 0; ; session = (session + 1) % 97) {
    let audit: ReturnType<typeof makeAudit> | null = makeAudit(orgId)
    let cursor: EraseCursor | null = null
    do {
      const command = { orgId, sessionIds: [`s${session}`], subjects: [] }
      const step: EraseResult = await store.events.erase({ ...command, audit, cursor })
      sayTaken(step.events)
      cursor = step.next
      audit = null
    } while (cursor !== null)
    await Bun.sleep(20)
  }
}

await Promise.all([append(), expire(), erase()])
