/** The faults of a fleet: of its nodes, what connects them, and the database. After each, all of it runs again. */
import { existsSync } from 'node:fs'
import { pgbouncerPath } from '../../../scripts/postgres.ts'
import type { Seeded } from '../seeded.ts'
import { fakeTime, type Fleet, type FleetNode } from './fleet.ts'
import type { Pair } from './pair.ts'

export interface Stage {
  fleet: Fleet
  random: Seeded
  /** What must never happen, in words. */
  report(problem: string): void
}

/** Webhook deliveries are leased for 30 s. */
const pastLeaseMs = 32_000
const hourMs = 3_600_000

const anyNode = ({ fleet, random }: Stage): FleetNode =>
  fleet.nodes.filter(({ isStopped }) => !isStopped)[
    random.below(fleet.nodes.filter((n) => !n.isStopped).length)
  ]!

async function endNode({ report }: Stage, node: FleetNode, method: 'stop' | 'kill'): Promise<void> {
  const { code, stderr } = await node.appliance[method]()
  if (method === 'stop' && code !== 0) report(`${node.name} stopped with ${code}: ${stderr.slice(-500)}`)
}

const ownBackends = `FROM pg_stat_activity WHERE application_name LIKE 'sightglass/%' OR application_name = 'pgbouncer'`

async function duringCommits({ fleet }: Stage, forMs: number): Promise<void> {
  const client = `SELECT count(pg_terminate_backend(pid)) ${ownBackends.replace('WHERE', 'WHERE (')})
    AND (wait_event = 'SyncRep' OR wait_event LIKE 'WAL%' OR query ILIKE 'commit%' AND state = 'active')`
  for (const endMs = performance.now() + forMs; performance.now() < endMs; await Bun.sleep(10))
    await fleet.sql(client).catch(() => '')
}

/** By name, with how often each is drawn. */
export interface Faults {
  [name: string]: {
    weight: number
    /** A file, and Debian's package that has it. */
    needs?: { file: string; install: string }
    run(stage: Stage): Promise<void>
  }
}

/** Those that this machine can make. `say` gets a line for each of the others. */
export function possible(faults: Faults, say: (line: string) => void): Faults {
  const isPossible = ([name, { needs }]: [string, Faults[string]]) => {
    if (needs === undefined || existsSync(needs.file)) return true
    say(`without "${name}": apt-get install ${needs.install}`)
    return false
  }
  return Object.fromEntries(Object.entries(faults).filter(isPossible))
}

/** Faults of the nodes, the load balancer and the pooler, for every set-up of the database. */
export const fleetFaults: Faults = {
  'node killed': {
    weight: 4,
    async run(stage) {
      const node = anyNode(stage)
      await endNode(stage, node, 'kill')
      await Bun.sleep(stage.random.below(500))
      await node.start()
    },
  },
  'node terminated': {
    weight: 2,
    async run(stage) {
      const node = anyNode(stage)
      await endNode(stage, node, 'stop')
      await node.start()
    },
  },
  'node stopped for a moment': {
    weight: 2,
    async run(stage) {
      const { pid } = anyNode(stage).appliance
      process.kill(pid, 'SIGSTOP')
      await Bun.sleep(500 + stage.random.below(6_500))
      process.kill(pid, 'SIGCONT')
    },
  },
  /** The node stays stopped past its leases while other faults run. The program waits for it at the end. */
  'node stopped past its lease': {
    weight: 1,
    async run({ fleet, random }) {
      if (fleet.nodes.some(({ isStopped }) => isStopped)) return
      const node = fleet.nodes[random.below(fleet.nodes.length)]!
      const { pid } = node.appliance
      node.isStopped = true
      process.kill(pid, 'SIGSTOP')
      fleet.continued = Bun.sleep(pastLeaseMs).then(() => {
        process.kill(pid, 'SIGCONT')
        node.isStopped = false
      })
    },
  },
  'clock off by an hour': {
    weight: 1,
    needs: { file: fakeTime, install: 'libfaketime' },
    async run(stage) {
      const node = anyNode(stage)
      await endNode(stage, node, 'kill')
      await node.start(stage.random.below(2) === 0 ? hourMs : -hourMs)
    },
  },
  'back ends terminated': {
    weight: 4,
    async run({ fleet, random }) {
      for (let times = 0; times < 6; times++) {
        await fleet.sql(`SELECT count(pg_terminate_backend(pid)) ${ownBackends} AND random() < 0.4`)
        await Bun.sleep(random.below(300))
      }
    },
  },
  'back ends terminated during COMMIT': { weight: 4, run: (stage) => duringCommits(stage, 1_500) },
  'back end killed': {
    weight: 1,
    async run({ fleet }) {
      const pid = Number(await fleet.sql(`SELECT pid ${ownBackends} ORDER BY random() LIMIT 1`))
      if (pid > 0) process.kill(pid, 'SIGKILL') // the server ends all others and recovers
    },
  },
  'locks held past their time limits': {
    weight: 1,
    async run({ fleet, random }) {
      const table = ['event_org', 'store_lock', 'event_id'][random.below(3)]!
      await fleet
        .sql(`BEGIN; LOCK TABLE sightglass.${table} IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(6.5); COMMIT`)
        .catch(() => '')
    },
  },
  'pooler restarted': {
    weight: 1,
    needs: { file: pgbouncerPath() ?? 'pgbouncer', install: 'pgbouncer' },
    run: async ({ fleet }) => fleet.pooler?.restart(),
  },
  'proxy restarted': { weight: 1, run: ({ fleet }) => fleet.proxy.restart() },
}

export const pairFaults = (pair: Pair): Faults => ({
  'server killed': {
    weight: 4,
    async run({ random }) {
      const { cluster } = pair.primary()
      await cluster.kill()
      await Bun.sleep(random.below(2_000))
      await cluster.restart()
    },
  },
  'server restarted': { weight: 2, run: () => pair.primary().cluster.restart() },
  'server stopped for a moment': {
    weight: 2,
    async run({ random }) {
      const { cluster } = pair.primary()
      cluster.signal('SIGSTOP')
      await Bun.sleep(1_000 + random.below(4_000))
      cluster.signal('SIGCONT')
    },
  },
  'standby stopped for a moment': {
    weight: 1,
    async run({ random }) {
      const { cluster } = pair.standby()
      cluster.signal('SIGSTOP')
      await Bun.sleep(500 + random.below(2_000))
      cluster.signal('SIGCONT')
    },
  },
  'fail-over from a killed primary': { weight: 2, run: () => pair.failOver('killed') },
  'fail-over from a partitioned primary': { weight: 1, run: () => pair.failOver('partitioned') },
  'disk of the database full': {
    weight: 1,
    async run({ random }) {
      const member = pair.primary()
      pair.fill(member)
      await Bun.sleep(2_000 + random.below(2_000))
      pair.free(member)
      await pair.revive()
    },
  },
})

/** Kinds that were drawn least are drawn first, so that a long run has all of them. */
export function drawFault(
  { below: randomBelow }: Seeded,
  faults: Faults,
  counts: { [name: string]: number },
): string {
  const names = Object.keys(faults)
  const rate = (name: string) => (counts[name] ?? 0) / faults[name]!.weight
  const lowestRate = Math.min(...names.map(rate))
  const candidates = names.filter((name) => rate(name) <= lowestRate + 0.5)
  return candidates[randomBelow(candidates.length)]!
}
