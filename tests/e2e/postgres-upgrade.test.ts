/** Nodes go from one release to the next: the executable, and one of the same sources and a migration more. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { type Appliance, startAppliance } from '../support/binary.ts'
import { event } from '../support/events.ts'
import { freePort } from '../support/free-port.ts'
import { database, type TestDatabase } from '../support/postgres.ts'
import { nextRelease, nextVersion } from '../support/releases.ts'
import { tempDir } from '../support/temp-dir.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(120_000)

const dir = tempDir('upgrade')
let nextBinary = ''

beforeAll(async () => {
  nextBinary = await nextRelease()
})
afterAll(() => dir.remove())

interface Fleet {
  ports: number[]
  /** Starts a node of a release in place of the one with this number, which has ended. */
  start(index: number, release: 'old' | 'next', olderNodes?: 'write' | 'end'): Promise<Appliance>
}

function fleet({ url }: TestDatabase, name: string, count: number): Fleet {
  const ports = Array.from({ length: count }, freePort)
  return {
    ports,
    start: (index, release, olderNodes = 'write') =>
      startAppliance({
        dataDir: dir.join(`${name}-${index}`),
        port: ports[index]!,
        cwd: dir.path,
        args: ['--node-name', `${name}-${index}`, '--upgrade-wait', 'off'],
        env: {
          SIGHTGLASS_DATABASE: url,
          SIGHTGLASS_KEY_RING: '11'.repeat(32),
          NEXT_OLDER_NODES: olderNodes,
        },
        ...(release === 'next' ? { binary: nextBinary } : {}),
      }),
  }
}

async function keyOf(node: Appliance, kind: 'ingest' | 'secret'): Promise<string> {
  const { stdout } = await node.cli('key', 'create', '--kind', kind, '--label', kind, '--json')
  return (JSON.parse(stdout) as { key: string }).key
}

/** Sends batches to every node in turn, as a client behind a load balancer does, until it is stopped. */
function load(ports: readonly number[], key: string) {
  const acknowledged = new Set<string>()
  const unexpected: string[] = []
  let isOver = false
  let sentCount = 0
  const sender = async (first: number): Promise<void> => {
    for (let round = first; !isOver; round++) {
      const ids = Array.from({ length: 20 }, () => `evt_${sentCount++}`)
      for (let tries = 0; ; tries++) {
        const port = ports[(round + tries) % ports.length]!
        const response = await post(port, ids).catch(() => null) // a node that ended
        if (response?.status === 202) break
        const isFine = response === null || (response.status === 503 && response.headers.has('retry-after'))
        // A key is known to every node within a second.
        if (!isFine && response.status !== 401) unexpected.push(`${response.status} ${await response.text()}`)
        await Bun.sleep(20)
      }
      for (const id of ids) acknowledged.add(id)
      await Bun.sleep(10)
    }
  }
  const post = (port: number, ids: string[]): Promise<Response> =>
    fetch(`http://127.0.0.1:${port}/v1/sdk/events`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ events: ids.map((id) => event(id)) }),
    })
  const senders = [0, 1, 2].map(sender)
  return {
    acknowledged,
    async more(count: number): Promise<void> {
      const goal = acknowledged.size + count
      await until(() => acknowledged.size >= goal)
    },
    async end(): Promise<void> {
      isOver = true
      await Promise.all(senders)
      expect(unexpected).toEqual([])
    },
  }
}

async function statusOf(port: number, path: string): Promise<number> {
  return fetch(`http://127.0.0.1:${port}${path}`).then(
    ({ status }) => status,
    () => 0,
  )
}

/** Every acknowledged event is there once, and nothing else. */
async function expectExact(node: Appliance, { cluster, name }: TestDatabase, count: number): Promise<void> {
  const stored = 'SELECT last_seq, (SELECT count(*) FROM sightglass.event_id) FROM sightglass.event_org'
  expect(await cluster.sql(stored, name)).toBe(`${count}|${count}`)
  const verdict = await node.cli('verify', '--json')
  const { events } = JSON.parse(verdict.stdout) as { events: { orgs: { events: number }[] } }
  expect([verdict.code, events.orgs.map((org) => org.events)]).toEqual([0, [count]])
}

test('three nodes under load go one by one to a release whose migration they tolerate', async () => {
  const testDatabase = await database('migrated')
  const { ports, start } = fleet(testDatabase, 'rolling', 3)
  const nodes = [await start(0, 'old')]
  nodes.push(...(await Promise.all([start(1, 'old'), start(2, 'old')])))
  const traffic = load(ports, await keyOf(nodes[0]!, 'ingest'))
  await traffic.more(200)
  for (const index of [0, 1, 2]) {
    expect((await nodes[index]!.stop()).code).toBe(0)
    nodes[index] = await start(index, 'next')
    expect(nodes[index].version).toBe(nextVersion)
    await traffic.more(200)
  }
  await traffic.end()
  // The command is the release before, which still works on the data, so the upgrade can be undone.
  const status = await nodes[0]!.cli('migrate', 'status')
  expect([status.code, status.stdout]).toEqual([0, expect.stringContaining('to which this one may write')])
  await expectExact(nodes[2]!, testDatabase, traffic.acknowledged.size)
  await nodes[0]!.stop()
  nodes[0] = await start(0, 'old')
  expect(await statusOf(ports[0]!, '/readyz')).toBe(200)
  await Promise.all(nodes.map((node) => node.stop()))
})

test('a release whose migration they do not tolerate waits for the others, and a suspended one writes nothing', async () => {
  const testDatabase = await database('migrated')
  const { ports, start } = fleet(testDatabase, 'ending', 3)
  const first = await start(0, 'old')
  const second = await start(1, 'old')
  const traffic = load(ports.slice(0, 2), await keyOf(first, 'ingest'))
  await traffic.more(100)
  const starting = start(2, 'next', 'end')
  await until(() => false, 1_000).catch(() => undefined)
  for (const endMs = performance.now() + 20_000; (await statusOf(ports[2]!, '/readyz')) !== 503;) {
    if (performance.now() > endMs) throw new Error('the new node does not answer while it waits')
    await Bun.sleep(50)
  }
  expect(await statusOf(ports[2]!, '/healthz')).toBe(200)
  const refused = await fetch(`http://127.0.0.1:${ports[2]}/readyz`)
  expect(refused.headers.get('retry-after')).toBe('2')
  const { message } = (await refused.json()) as { message: string }
  expect(message).toContain('nodes of an older release must end first: ending-0 (')
  await traffic.more(100)
  await traffic.end()
  // One node ends; the other is suspended, and counts as ended when it was not seen for 15 s.
  expect((await first.stop()).code).toBe(0)
  process.kill(second.pid, 'SIGSTOP')
  await testDatabase.cluster.sql(
    'UPDATE sightglass.node SET seen_at_ms = seen_at_ms - 15000',
    testDatabase.name,
  )
  const next = await starting
  expect(next.version).toBe(nextVersion)
  process.kill(second.pid, 'SIGCONT')
  const late = await fetch(`${second.url}/v1/sdk/events`, { method: 'POST' }).catch(() => null)
  expect([undefined, 401, 503]).toContain(late?.status)
  const exit = await second.exit()
  expect([exit.code, exit.stderr]).toEqual([1, expect.stringContaining('use a newer release')])
  await expectExact(next, testDatabase, traffic.acknowledged.size)
  const older = await start(0, 'old').catch((error: Error) => error.message)
  expect(older).toContain('use the release that wrote it or a newer one')
  expect((await next.stop()).code).toBe(0)
})
