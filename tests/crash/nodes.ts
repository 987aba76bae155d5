/** Faults of three nodes and their database, run by hand: `bun tests/crash/nodes.ts --faults 20 [--seed N]`. */
import { cpus } from 'node:os'
import { join } from 'node:path'
import { bunProgram, run } from '../support/process.ts'
import { check, type Checked } from './nodes/checks.ts'
import { drawFault, fleetFaults, pairFaults, possible, type Faults, type Stage } from './nodes/faults.ts'
import { startFleet, type Fleet, type Servers as Ports } from './nodes/fleet.ts'
import { startLoad, type Load } from './nodes/load.ts'
import { startPair } from './nodes/pair.ts'
import { patroniFaults, startPatroni } from './nodes/patroni.ts'
import { sqlOn } from '../support/postgres.ts'
import { anySeed, seeded } from './seeded.ts'

const help = `Runs three nodes behind haproxy on a PostgreSQL primary with a synchronous standby, writes, reads, follows
the live stream and receives webhooks, and makes faults meanwhile. After every few faults it compares everything:
acknowledged events are stored once, delivered by one node at a time, followed once and in order, counted and intact.
Exit code 1 when anything differs.

  --faults N    how many; 20 when not said
  --seed N      of an earlier run, to repeat its choices (the moments themselves depend on the machine)
  --only TEXT   only faults whose name contains it
  --each N      faults before each comparison; 5 when not said
  --snapshots N reads counts, blocks and ids in N snapshots meanwhile
  --patroni     two servers under Debian's Patroni with etcd, whose leaders fail`

const pauseMs = 700

/** The database of a run, and what may happen to it. */
interface Servers {
  ports: Ports
  faults: Faults
  sql: Fleet['sql']
  synchronous(): Promise<void>
  stop(): Promise<void>
}

async function pairServers(): Promise<Servers> {
  const pair = await startPair()
  return {
    ports: pair.members.map(({ port, checksPort }) => [port, checksPort]),
    faults: pairFaults(pair),
    sql: (text) => pair.primary().cluster.sql(text),
    synchronous: pair.synchronous,
    stop: pair.stop,
  }
}

async function patroniServers(): Promise<Servers> {
  const patroni = await startPatroni()
  return {
    ports: patroni.members.map(({ port, checksPort }) => [port, checksPort]),
    faults: patroniFaults(patroni),
    sql: async (text) => sqlOn((await patroni.leader()).port)(text),
    synchronous: patroni.synchronous,
    stop: patroni.stop,
  }
}

/** Starts the reader. The function that it returns waits for the end and prints the result. */
function readSnapshots(fleet: Fleet, count: string): (load: Load) => Promise<void> {
  if (count === '0') return async () => undefined
  const command = [...bunProgram(join(import.meta.dir, 'nodes/snapshots.ts')), fleet.databaseUrl, count]
  const child = run(command, { cwd: fleet.dir.path, env: { PATH: process.env['PATH'] ?? '' } })
  return async (load) => {
    const code = await child.exited
    process.stdout.write(child.stdout())
    if (code !== 0) load.faults.push(`snapshots: ${child.stderr()}`)
  }
}

async function main(args: string[]): Promise<number> {
  if (args.includes('--help')) {
    console.log(help)
    return 0
  }
  const option = (name: string) => (args.includes(name) ? args[args.indexOf(name) + 1]! : undefined)
  const count = Number(option('--faults') ?? 20)
  const roundsEach = Number(option('--each') ?? 5)
  const seed = Number(option('--seed') ?? anySeed())
  const servers = args.includes('--patroni') ? await patroniServers() : await pairServers()
  const isWanted = ([name]: [string, unknown]) => name.includes(option('--only') ?? '')
  const chosenFaults = Object.fromEntries(
    Object.entries({ ...fleetFaults, ...servers.faults }).filter(isWanted),
  )
  const faults = possible(chosenFaults, console.log)
  if (Object.keys(faults).length === 0) throw new Error('no fault is left')
  console.log(`${count} faults, seed ${seed}, ${cpus().length} cores, Bun ${Bun.version}`)
  const fleet = await startFleet(servers.ports, servers.sql)
  const load = await startLoad(fleet, seed)
  const snapshots = readSnapshots(fleet, option('--snapshots') ?? '0')
  const stage: Stage = { fleet, random: seeded(seed), report: (problem) => load.faults.push(problem) }
  const counts: { [name: string]: number } = {}
  const total = { lost: 0, doubled: 0, twoOwners: 0, faults: 0 }
  let last: Checked | null = null
  for (let number = 1; number <= count; number++) {
    const name = drawFault(stage.random, faults, counts)
    counts[name] = (counts[name] ?? 0) + 1
    await Bun.sleep(pauseMs)
    const startedMs = performance.now()
    await faults[name]!.run(stage)
    await servers.synchronous()
    console.log(`${number} ${name}, ${Math.round(performance.now() - startedMs)} ms`)
    if (number % roundsEach !== 0 && number !== count) continue
    if (number === count) await snapshots(load)
    await fleet.continued
    await Bun.sleep(pauseMs)
    await load.pause()
    last = await check(fleet, load)
    load.resume()
    total.lost += last.lost
    total.doubled += last.doubled
    total.twoOwners += last.twoOwners
    total.faults += last.faults.length
    console.log(JSON.stringify(last))
  }
  const { statuses, longestMs, resumed, reads } = load
  await load.end()
  await fleet.stop()
  await servers.stop()
  console.log(`faults: ${JSON.stringify(counts)}`)
  console.log(
    `answers: ${JSON.stringify(statuses)}, the longest after ${Math.round(longestMs)} ms; ${reads} counts read, ` +
      `the live stream resumed ${resumed} times, ${last?.repeats} deliveries repeated after a lost answer`,
  )
  console.log(
    `${last?.acknowledged} acknowledged, ${total.lost} lost, ${total.doubled} doubled, ` +
      `${total.twoOwners} deliveries by two owners, ${total.faults} other faults`,
  )
  return Object.values(total).every((sum) => sum === 0) ? 0 : 1
}

process.exitCode = await main(Bun.argv.slice(2))
process.exit()
