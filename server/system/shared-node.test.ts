/** The node of a shared database: its clock is the database's, whatever happens to the clock of its machine. */
import { expect, test } from 'bun:test'
import { openStore } from '../../db/open.ts'
import { stateChecks } from '../operations/doctor/server-checks.ts'
import { tempDir } from '../../tests/support/temp-dir.ts'
import { startNode } from './shared-node.ts'

const hourMs = 3_600_000
const start = Date.UTC(2026, 10, 22, 12)

test('a jump of the machine’s clock does not move the node’s time, is logged once, and the doctor warns', async () => {
  using dir = tempDir('node')
  const store = await openStore({ folder: dir.path, now: start })
  const time = { wallMs: start, passedMs: 0, databaseMs: start }
  const clock = { now: () => time.wallMs, elapsed: () => time.passedMs }
  // The store of a data folder repeats the caller's time, so this stands for a database with a clock of its own.
  const heartbeat = ({ name }: { name: string }) =>
    store.nodes.heartbeat({ name, report: null, now: time.databaseMs })
  const nodes = { ...store.nodes, heartbeat }
  const warnings: string[] = []
  const log = { warn: (name: string) => void warnings.push(name) }
  const nodeFacts = { name: 'edge', version: '1', role: 'ingest' as const }
  const node = await startNode({ store: { nodes }, node: nodeFacts, clock, log })
  const skew = () =>
    stateChecks({
      ready: [],
      outbound: { calls: [], open: null },
      clock: null,
      aheadMs: node.aheadMs(),
      upkeep: null,
      reports: null,
      lostLines: { bad: 0, dropped: 0 },
    }).find(({ id }) => id === 'clock-skew')
  expect([node.clock.now(), node.aheadMs(), skew()?.status]).toEqual([start, 0, 'ok'])

  time.wallMs += hourMs
  time.passedMs += 1_000
  expect(node.clock.now()).toBe(start + 1_000)
  for (let n = 0; n < 3; n++) await node.beat()
  expect(warnings).toEqual(['clock_differs_from_database'])
  expect(skew()).toMatchObject({ status: 'warning', detail: expect.stringContaining('3600.0 s ahead of') })

  time.databaseMs = start + 7_000
  await node.beat()
  expect(node.clock.now()).toBe(start + 7_000)
  expect(await store.nodes.list({ now: time.databaseMs })).toMatchObject([
    { name: 'edge', seenAtMs: start + 7_000 },
  ])

  // Another node deletes this one, as a restored database lacks it.
  const otherFacts = { name: 'core', version: '1', role: 'all' as const }
  await store.nodes.register({ node: otherFacts, now: start + 72 * hourMs })
  expect((await store.nodes.list({ now: time.databaseMs })).map(({ name }) => name)).toEqual(['core'])
  await node.beat()
  expect((await store.nodes.list({ now: time.databaseMs })).map(({ name }) => name)).toEqual(['core', 'edge'])
  await store.close()
})

test('a second process under the same name is reported once, and the one that ends leaves the other', async () => {
  using dir = tempDir('node')
  const store = await openStore({ folder: dir.path, now: start })
  const time = { wallMs: start }
  const clock = { now: () => time.wallMs, elapsed: () => time.wallMs - start }
  const warnings: string[] = []
  const log = { warn: (name: string) => void warnings.push(name) }
  const nodeFacts = { name: 'edge', version: '1', role: 'all' as const }
  const first = await startNode({ store, node: nodeFacts, clock, log })
  time.wallMs += 1_000
  const second = await startNode({ store, node: nodeFacts, clock, log })
  for (let n = 0; n < 2; n++) await first.beat()
  await second.beat()
  expect([first.isNamedTwice(), second.isNamedTwice(), warnings]).toEqual([
    true,
    false,
    ['node_name_used_twice'],
  ])
  await first.leave()
  expect(await store.nodes.list({ now: time.wallMs })).toHaveLength(1)
  await second.leave()
  expect(await store.nodes.list({ now: time.wallMs })).toHaveLength(0)
  await store.close()
})
