/** A connection that is lost while it commits: the change is reported as made exactly when it was made. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import type { Socket } from 'bun'
import { openPostgresStore } from '../../db/postgres/store.ts'
import type { Store } from '../../db/contract/store.ts'
import { database } from '../support/postgres.ts'
import { makeAudit, makeOrg, noon } from './make.ts'
import { auditOf, failure } from './subject.ts'

setDefaultTimeout(90_000)

/** What happens to the next COMMIT: its answer is lost, or it never reaches the server. */
let cut: 'answer' | 'request' | null = null
let store: Store
let proxy: { port: number; stop(): void }
const org = makeOrg()

/** Between the store and the server: passes everything on, except what `cut` says. */
function startProxy(port: number) {
  type Pair = { server: Socket | null; waiting: Buffer[]; dropsAnswer: boolean }
  const listener = Bun.listen<Pair>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      async open(client) {
        client.data = { server: null, waiting: [], dropsAnswer: false }
        client.data.server = await Bun.connect({
          hostname: '127.0.0.1',
          port,
          socket: {
            data(_server, bytes) {
              if (client.data.dropsAnswer) return void client.terminate()
              client.write(bytes)
            },
            close: () => void client.terminate(),
          },
        })
        for (const bytes of client.data.waiting.splice(0)) client.data.server.write(bytes)
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
  return { port: listener.port, stop: () => listener.stop(true) }
}

beforeAll(async () => {
  const url = new URL((await database()).url)
  proxy = startProxy(Number(url.port))
  url.port = String(proxy.port)
  store = await openPostgresStore({
    ...{ url: url.href, node: 'one', now: noon, readers: 1, readDeadlineMs: 10_000 },
  })
  await store.orgs.create({ org, audit: makeAudit(org.id) })
})
afterAll(async () => {
  await store.close()
  proxy.stop()
})

const wasCut = () => cut === null
const stored = async (id: string) => (await auditOf(store, org.id)).filter((entry) => entry.id === id).length

test('a change whose acknowledgement was lost succeeds, and is there once', async () => {
  for (let n = 0; n < 5; n++) {
    const audit = makeAudit(org.id)
    cut = 'answer'
    await store.audit.append(audit)
    expect([wasCut(), await stored(audit.id)]).toEqual([true, 1])
  }
})

test('a change that never reached the server fails, is not there, and the next one succeeds', async () => {
  for (let n = 0; n < 5; n++) {
    const audit = makeAudit(org.id)
    cut = 'request'
    expect((await failure(store.audit.append(audit))).kind).toBe('unavailable')
    expect([wasCut(), await stored(audit.id)]).toEqual([true, 0])
    await store.audit.append(audit)
    expect(await stored(audit.id)).toBe(1)
  }
})
