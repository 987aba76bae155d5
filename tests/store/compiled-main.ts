/** Main module of the executable that the compiled test builds: the store's life cycle in one run, printed as JSON. */
import { openDatabaseAdmin, openStore } from '../../db/open.ts'
import { makeAudit, makeBatch, makeEvent, noon } from './make.ts'

const [folder = ''] = process.argv.slice(2)
const store = await openStore({ folder, now: noon })
const appended = await store.events.append(
  makeBatch('org_a', [makeEvent('a'), makeEvent('b'), makeEvent('a')]),
)
await store.audit.append(makeAudit('org_a'))
const page = await store.events.page({
  orgId: 'org_a',
  filter: {},
  limit: 10,
  before: null,
  ceilingSeq: null,
})
const { schema } = await store.health()
await store.close()
const { chains, faults } = await openDatabaseAdmin(folder).verifyAudit()
const ids = page.events.map(({ json }) => json)
process.stdout.write(`${JSON.stringify({ appended, ids, schema, chains: chains.length, faults })}\n`)
