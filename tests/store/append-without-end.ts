/** Child of the kill test: appends until it is killed, printing each batch's ids once acknowledged. */
import { openStore } from '../../db/open.ts'
import { makeAudit, makeBatch, makeEvent, noon } from './make.ts'

const [folder = '', round = ''] = process.argv.slice(2)
const store = await openStore({ folder, now: noon })

async function send(sender: number): Promise<never> {
  for (let n = 0; ; n++) {
    const size = 1 + ((n * 7) % 13)
    const ids = Array.from({ length: size }, (_, index) => `${round}-${sender}-${n}-${index}`)
    const resent = ids.slice(0, 1) // a duplicate inside the batch
    await store.events.append(
      makeBatch(
        'org_a',
        [...ids, ...resent].map((id) => makeEvent(id)),
      ),
    )
    process.stdout.write(`${ids.join(' ')}\n`)
    if (n % 20 === 0) {
      const audit = makeAudit('org_a')
      await store.audit.append(audit)
      process.stdout.write(`audit ${audit.id}\n`)
    }
  }
}

await Promise.all(Array.from({ length: 8 }, (_, sender) => send(sender)))
