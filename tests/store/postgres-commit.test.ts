/** A connection that is lost while it commits: the change is reported as made exactly when it was made. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import type { Socket } from 'bun'
import { openPostgresStore } from '../../db/postgres/store.ts'
import type { Store } from '../../db/contract/store.ts'
import { database, startPostgres, type Cluster } from '../support/postgres.ts'
import { makeAudit, makeOrg, noon } from './make.ts'
import { auditOf, failure } from './subject.ts'

setDefaultTimeout(90_000)

/** What happens to the next COMMIT: its answer is lost, or it never reaches the server. */
let cut: 'answer' | 'request' | null = null
let store: Store
let proxy: ReturnType<typeof startProxy>
const org = makeOrg()

/** Between the store and the server: passes everything on, except what `cut` says. */
function startProxy(first: number) {
  let port = first
  type Pair = { server: Socket | null; waiting: Buffer[]; dropsAnswer: boolean }
  const listener = Bun.listen<Pair>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      async open(client) {
        client.data = { server: null, waiting: [], dropsAnswer: false }
        const server = await Bun.connect({
          hostname: '127.0.0.1',
          port,
          socket: {
            data(_server, bytes) {
              if (client.data.dropsAnswer) return void client.terminate()
              client.write(bytes)
            },
            close: () => void client.terminate(),
          },
        }).catch(() => null)
        if (server === null) return void client.terminate()
        client.data.server = server
        for (const bytes of client.data.waiting.splice(0)) server.write(bytes)
      },
      data(client, bytes) {
        if (cut !== null && bytes.includes('COMMIT')) {
          const isAnswer = cut === 'answer'
          cut = null
          if (!isAnswer) return void client.data.server?.terminate()
          client.data.dropsAnswer = true
        }
        if (client.data.server === null) client.data.waiting.push(Buffer.from(bytes))
        else client.data.server.write(bytes)
      },
      close: (client) => void client.data?.server?.terminate(),
    },
  })
  return {
    port: listener.port,
    /** Where the next connections lead to. */
    lead: (to: number) => void (port = to),
    stop: () => listener.stop(true),
  }
}

async function openThrough(target: string): Promise<void> {
  const url = new URL(target)
  proxy = startProxy(Number(url.port))
  url.port = String(proxy.port)
  store = await openPostgresStore({
    url: url.href,
    node: 'one',
    now: noon,
    readers: 1,
    readDeadlineMs: 10_000,
  })
  await store.orgs.create({ org, audit: makeAudit(org.id) })
}

beforeAll(async () => openThrough((await database('migrated')).url))
afterAll(async () => {
  await store.close()
  proxy.stop()
})

const wasCut = () => cut === null
const stored = async (id: string) => (await auditOf(store, org.id)).filter((entry) => entry.id === id).length

test('a change whose acknowledgement was lost succeeds, and is stored once', async () => {
  for (let n = 0; n < 5; n++) {
    const audit = makeAudit(org.id)
    cut = 'answer'
    await store.audit.append(audit)
    expect([wasCut(), await stored(audit.id)]).toEqual([true, 1])
  }
})

test('a change that never reached the server fails and is not stored, and the next one succeeds', async () => {
  for (let n = 0; n < 5; n++) {
    const audit = makeAudit(org.id)
    cut = 'request'
    expect((await failure(store.audit.append(audit))).kind).toBe('unavailable')
    expect([wasCut(), await stored(audit.id)]).toEqual([true, 0])
    await store.audit.append(audit)
    expect(await stored(audit.id)).toBe(1)
  }
})

const replicating = { wal_level: 'replica', max_wal_senders: '4' }
const portOf = ({ url }: Cluster) => Number(new URL(url).port)

/** A copy that took over before it had the latest transactions, and that gave their numbers to others. */
async function takenOver(primary: Cluster): Promise<Cluster> {
  const copy = await startPostgres({
    settings: replicating,
    standbyOf: { port: portOf(primary), name: 'copy' },
  })
  await copy.promote()
  await copy.sql('DO $$ BEGIN FOR n IN 1..500 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$')
  return copy
}

test('a change that a fail-over lost fails, although its transaction number is committed there', async () => {
  await store.close()
  proxy.stop()
  const primary = await startPostgres({ settings: replicating })
  await openThrough(primary.url)
  await store.audit.append(makeAudit(org.id))
  const copy = await takenOver(primary)
  proxy.lead(portOf(copy))
  const audit = makeAudit(org.id)
  cut = 'answer'
  expect((await failure(store.audit.append(audit))).kind).toBe('unavailable')
  expect(await primary.sql(`SELECT count(*) FROM sightglass.audit_entry WHERE id = '${audit.id}'`)).toBe('1')
  expect(await copy.sql(`SELECT count(*) FROM sightglass.audit_entry WHERE id = '${audit.id}'`)).toBe('0')
  await Promise.all([primary.stop(), copy.stop()])
})
