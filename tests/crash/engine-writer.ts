/** Program of `ingest-round.ts`: appends batches until it is killed, printing `first count` once one is stored. */
import { openStore } from '../../db/open.ts'
import { makeBatch, noon } from '../store/make.ts'
import { crashEvent, orgId } from './engine-events.ts'

const [folder = '', round = '0', batchEvents = '1', restMs = '0'] = Bun.argv.slice(2)
const store = await openStore({ folder, now: noon })
const inFlight = 4
let sentCount = 0

async function sender(): Promise<void> {
  for (;;) {
    const first = sentCount
    sentCount += Number(batchEvents)
    const events = Array.from({ length: sentCount - first }, (_, n) => crashEvent(Number(round), first + n))
    await store.events.append(makeBatch(orgId, events))
    process.stdout.write(`${first} ${events.length}\n`)
    if (restMs !== '0') await Bun.sleep(Number(restMs))
  }
}

await Promise.all(Array.from({ length: inFlight }, sender))
