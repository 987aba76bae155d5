/** Load on the real executable: four thousand due deliveries in one run, and one hanging receiver among fifty. */
import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { limits } from '../../server/limits.ts'
import { cli, startAppliance } from '../support/binary.ts'
import { processorSeconds } from '../bench/report.ts'
import { tempDir } from '../support/temp-dir.ts'

const args = ['--dispatch-cron', '* * * * * *', '--webhook-allow', '127.0.0.0/8']

/** A data folder with `count` deliveries that are due, to the URLs in turn, as if scheduled before a long pause. */
async function folderWithDue(dataDir: string, count: number, urls: string[]): Promise<void> {
  const secretResult = await cli(['webhook', 'secret'], { dataDir })
  if (secretResult.code !== 0) throw new Error(secretResult.stderr)
  const db = new Database(`${dataDir}/sightglass.db`)
  const org = db.query<{ id: string }, []>('SELECT id FROM org').get()!
  const insert = db.prepare(
    `INSERT INTO webhook_delivery (id, org_id, url, lane, body, status, attempts, interruptions, probe,
       next_attempt_at_ms, scheduled_at_ms, pending_since_ms)
     VALUES (?1, ?2, ?3, ?4, ?5, 'pending', 0, 0, 0, ?6, ?6, ?6)`,
  )
  const now = Date.now() - 60_000
  db.transaction(() => {
    for (let i = 0; i < count; i++) {
      const url = urls[i % urls.length]!
      insert.run(`wh_load_${i}`, org.id, url, new URL(url).origin, `{"n":${i}}`, now)
    }
  })()
  insert.finalize()
  db.close()
}

test('the run of a start drains 4,000 due deliveries to one receiver, each once, for a few times the work of plain posts', async () => {
  using folder = tempDir('webhook-load')
  const arrivalsById = new Map<string, number>()
  const receiver = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      await request.arrayBuffer()
      const id = request.headers.get('webhook-id')
      if (id !== null) arrivalsById.set(id, (arrivalsById.get(id) ?? 0) + 1)
      return new Response()
    },
  })
  const url = `http://127.0.0.1:${receiver.port}/`
  const dataDir = folder.join('data')
  await folderWithDue(dataDir, 4_000, [url])
  // The start is the only run until New Year.
  const dispatchArgs = ['--dispatch-cron', '0 0 1 1 *', '--webhook-allow', '127.0.0.0/8']
  await using appliance = await startAppliance({ args: dispatchArgs, dataDir })
  const startS = processorSeconds(appliance.pid)
  const startedMs = performance.now()
  while (arrivalsById.size < 4_000 && performance.now() - startedMs < 55_000) await Bun.sleep(20)
  const tookS = processorSeconds(appliance.pid) - startS
  await appliance.stop()
  expect([arrivalsById.size, Math.max(...arrivalsById.values())]).toEqual([4_000, 1])
  const floorS = await postAll(url, 4_000)
  await receiver.stop(true)
  // Each delivery is claimed, signed, sent on a connection of its own and recorded on disk.
  expect(tookS / floorS).toBeLessThan(10)
}, 150_000)

/** Processor time in s of this process, receiver included, for as many posts on connections of their own. */
async function postAll(url: string, count: number): Promise<number> {
  const start = process.cpuUsage()
  let sentCount = 0
  const lane = async (): Promise<void> => {
    while (sentCount++ < count)
      await fetch(url, { method: 'POST', body: `{"n":${sentCount}}`, keepalive: false })
  }
  await Promise.all(Array.from({ length: limits.webhooksPerLaneMax }, lane))
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1e6
}

test('one hanging receiver among fifty delays no other by more than one run', async () => {
  using folder = tempDir('webhook-load')
  const arrivals = new Map<number, number[]>()
  const startedMs = performance.now()
  const receivers = Array.from({ length: 50 }, (_, index) =>
    Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      idleTimeout: 60,
      async fetch() {
        arrivals.set(index, [...(arrivals.get(index) ?? []), performance.now() - startedMs])
        return index === 0 ? new Promise<Response>(() => {}) : new Response()
      },
    }),
  )
  const dataDir = folder.join('data')
  // Twenty for each: the hanging one holds its two slots all the time, and no more.
  await folderWithDue(
    dataDir,
    1_000,
    receivers.map(({ port }) => `http://127.0.0.1:${port}/`),
  )
  await using appliance = await startAppliance({ args, dataDir })
  const otherTimes = () => [...arrivals].filter(([index]) => index !== 0).flatMap(([, times]) => times)
  const isComplete = () => otherTimes().length >= 49 * 20 && arrivals.get(0)?.length === 2
  while (!isComplete() && performance.now() - startedMs < 60_000) await Bun.sleep(20)
  expect(otherTimes()).toHaveLength(49 * 20)
  expect(arrivals.get(0)).toHaveLength(2)
  // The others do not wait for the hanging one to time out.
  expect(Math.max(...otherTimes()) - arrivals.get(0)![0]!).toBeLessThan(limits.webhookTimeoutMs - 1_000)
  await appliance.kill()
  for (const receiver of receivers) await receiver.stop(true)
}, 90_000)

test('three kill -9 during a drain lose no delivery and use no retry', async () => {
  using folder = tempDir('webhook-load')
  const seenIds = new Set<string>()
  let requests = 0
  const receiver = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      await request.arrayBuffer()
      requests++
      seenIds.add(request.headers.get('webhook-id')!)
      return new Response()
    },
  })
  const dataDir = folder.join('data')
  const total = 1_500
  await folderWithDue(dataDir, total, [`http://127.0.0.1:${receiver.port}/`])
  for (const untilSeen of [200, 600, 1_000]) {
    const appliance = await startAppliance({ args, dataDir })
    const deadlineMs = performance.now() + 15_000
    while (seenIds.size < untilSeen && performance.now() < deadlineMs) await Bun.sleep(2)
    await appliance.kill()
  }
  expect(seenIds.size).toBeLessThan(total) // the last kill came in the middle, too
  await using appliance = await startAppliance({ args, dataDir })
  const db = new Database(`${dataDir}/sightglass.db`, { readonly: true })
  const count = (condition: string) =>
    db.query<{ n: number }, []>(`SELECT count(*) AS n FROM webhook_delivery WHERE ${condition}`).get()!.n
  const deadlineMs = performance.now() + 20_000
  while (count("status = 'pending'") > 0 && performance.now() < deadlineMs) await Bun.sleep(50)
  expect([seenIds.size, count("status = 'delivered' AND attempts = 1")]).toEqual([total, total])
  // Deliveries sent twice were in flight or claimed when the process died.
  expect(requests - total).toBeLessThanOrEqual(3 * 32)
  db.close()
  await appliance.stop()
  await receiver.stop(true)
}, 90_000)
