/** Program of `engine-away.test.ts`: appends, expires, erases and gives room back at once until it is killed. */
import { openStore } from '../../db/open.ts'
import type { EraseCursor, EraseResult } from '../../db/store.ts'
import { makeAudit, makeBatch, noon } from '../store/make.ts'
import { crashEvent, orgId } from './engine-events.ts'

const [folder = '', round = '0'] = Bun.argv.slice(2)
const batchEvents = 500
const store = await openStore({ folder, now: noon })
let receivedAtMs = noon + Number(round) * 1_000_000

async function append(): Promise<void> {
  for (let first = 0; ; first += batchEvents) {
    const events = Array.from({ length: batchEvents }, (_, n) => crashEvent(Number(round), first + n))
    receivedAtMs++
    await store.events.append({ ...makeBatch(orgId, events), receivedAtMs })
    process.stdout.write(`${first}\n`)
  }
}

/** Keeps about forty batches. */
async function expire(): Promise<void> {
  for (;;) {
    await store.events.expire({ orgId, receivedBeforeMs: receivedAtMs - 40 })
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
      cursor = step.next
      audit = null
    } while (cursor !== null)
    await Bun.sleep(20)
  }
}

await Promise.all([append(), expire(), erase()])
