/** Child of the failed-device test: appends until a write fails, then prints what still works as a JSON line. */
import { openStore } from '../../db/open.ts'
import { makeAudit, makeBatch, makeEvent, noon } from './make.ts'
import { failure } from './subject.ts'

const [folder = ''] = process.argv.slice(2)
const store = await openStore({ folder, now: noon })
const acknowledged: string[] = []
const pad = 'x'.repeat(60_000)
let firstKind: string | null = null

for (let n = 0; firstKind === null; n++) {
  const event = makeEvent(`e${n}`, { json: JSON.stringify({ n, pad }) })
  await store.events.append(makeBatch('org_a', [event])).then(
    () => acknowledged.push(event.id),
    (error: { kind: string }) => (firstKind = error.kind),
  )
}
const smallAppend = await failure(store.events.append(makeBatch('org_a', [makeEvent('small')])))
const smallAudit = await failure(store.audit.append(makeAudit('org_a')))
const readable = (await store.events.byId({ orgId: 'org_a', id: 'e0' })) !== null
const kinds = [firstKind, smallAppend.kind, smallAudit.kind]
process.stdout.write(`${JSON.stringify({ kinds, readable, acknowledged })}\n`)
await store.close()
