/** Two PostgreSQL servers under Debian's Patroni with etcd, in synchronous mode: who is primary, and what may fail. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../support/free-port.ts'
import { asAccount, childrenOf, clusterFolder, program, signalTo, start } from '../../support/postgres.ts'
import type { Faults } from './faults.ts'
import type { Running } from '../../support/process.ts'

export interface PatroniMember {
  name: string
  port: number
  /** Of Patroni's API, which answers 200 to `/primary` on the primary alone. */
  checksPort: number
  patroni: Running
  /** Starts Patroni again, and with it the server. */
  start(): void
}

export interface Patroni {
  members: PatroniMember[]
  leader(): Promise<PatroniMember>
  /** Resolves when there is a leader, and a standby whose acknowledgement its commits wait for. */
  synchronous(): Promise<void>
  etcd: { restart(): Promise<void> }
  stop(): Promise<void>
}

/** A leader that vanishes is replaced when its lock in etcd ends: the shortest time that Patroni allows. */
const timing = { ttl: 20, loop_wait: 1, retry_timeout: 3 }
const startMs = 90_000
/** Until then Patroni still names a standby that the server has lost, and that may not take over. */
const noticedMs = 5_000

interface Place {
  name: string
  folder: string
  port: number
  checksPort: number
  etcdPort: number
}

/** Patroni reads YAML, of which JSON is a part. */
function configured({ name, folder, port, checksPort, etcdPort }: Place): string {
  const account = (username: string) => ({ username, password: 'x' })
  const trust = [
    'local all all trust',
    'host all all 127.0.0.1/32 trust',
    'host replication all 127.0.0.1/32 trust',
  ]
  return JSON.stringify({
    scope: 'sightglass',
    name,
    etcd3: { host: `127.0.0.1:${etcdPort}` },
    restapi: { listen: `127.0.0.1:${checksPort}`, connect_address: `127.0.0.1:${checksPort}` },
    bootstrap: {
      dcs: { ...timing, synchronous_mode: true, postgresql: { use_pg_rewind: true, parameters: {} } },
      initdb: [{ encoding: 'UTF8' }, { locale: 'C' }, 'data-checksums'],
    },
    postgresql: {
      listen: `127.0.0.1:${port}`,
      connect_address: `127.0.0.1:${port}`,
      pg_hba: trust,
      data_dir: join(folder, 'data'),
      bin_dir: program(''),
      pgpass: join(folder, 'pgpass'),
      authentication: { superuser: account('postgres'), replication: account('replicator') },
      parameters: {
        unix_socket_directories: folder,
        max_connections: 100,
        jit: 'off',
        shared_buffers: '32MB',
      },
    },
  })
}

/** The server, its children, and Patroni, which would start it again. */
function processesOf({ patroni, port }: PatroniMember): number[] {
  const servers = Bun.spawnSync(['pgrep', '-f', `postgres.*port=${port}`]).stdout.toString()
  const pids = servers.split('\n').filter(Boolean).map(Number)
  return [patroni.pid, ...pids.flatMap((pid) => [pid, ...childrenOf(pid)])]
}

function signalAll(pids: number[], name: NodeJS.Signals): void {
  for (const pid of pids) signalTo(pid, name)
}

export const patroniFaults = (patroni: Patroni): Faults => ({
  /** A machine that is gone, and returns after the other one took over. */
  'leader gone': {
    weight: 3,
    async run() {
      const old = await patroni.leader()
      signalAll(processesOf(old), 'SIGKILL')
      await old.patroni.exited
      const next = patroni.members.find((member) => member !== old)!
      await answering(async () => ((await leaderOf([next])) === null ? null : true))
      old.start()
    },
  },
  /** Past its lock in etcd: it returns as a leader that another one replaced. */
  'leader stopped past its lock': {
    weight: 1,
    async run() {
      const old = await patroni.leader()
      const pids = processesOf(old)
      signalAll(pids, 'SIGSTOP')
      const next = patroni.members.find((member) => member !== old)!
      await answering(async () => ((await leaderOf([next])) === null ? null : true))
      await Bun.sleep(2_000)
      signalAll(pids, 'SIGCONT')
    },
  },
  'server of the leader killed': {
    weight: 2,
    async run() {
      const [, ...pids] = processesOf(await patroni.leader())
      signalAll(pids, 'SIGKILL') // Patroni starts it again
      await Bun.sleep(noticedMs)
    },
  },
  'leader changed by an operator': {
    weight: 2,
    async run() {
      const leader = await patroni.leader()
      const candidate = patroni.members.find((member) => member !== leader)!.name
      const body = JSON.stringify({ leader: leader.name, candidate })
      const answer = await fetch(`http://127.0.0.1:${leader.checksPort}/switchover`, { method: 'POST', body })
      if (!answer.ok) throw new Error(`switchover: ${answer.status} ${await answer.text()}`)
    },
  },
  'etcd restarted': { weight: 1, run: patroni.etcd.restart },
})

export async function startPatroni(): Promise<Patroni> {
  const folder = await clusterFolder()
  const etcdPort = freePort()
  const peerPort = freePort()
  const client = `http://127.0.0.1:${etcdPort}`
  const peer = `http://127.0.0.1:${peerPort}`
  const startEtcd = () =>
    start(
      asAccount([
        'etcd',
        '--data-dir',
        join(folder, 'etcd'),
        '--listen-client-urls',
        client,
        '--advertise-client-urls',
        client,
        '--listen-peer-urls',
        peer,
        '--log-level',
        'error',
        '--initial-advertise-peer-urls',
        peer,
        '--initial-cluster',
        `default=${peer}`,
      ]),
      folder,
    )
  let etcd = startEtcd()
  const members: PatroniMember[] = []
  for (const name of ['one', 'two']) {
    const place = { name, folder: await clusterFolder(), port: freePort(), checksPort: freePort(), etcdPort }
    writeFileSync(join(place.folder, 'patroni.yml'), configured(place), { mode: 0o644 })
    const begin = () => start(asAccount(['patroni', join(place.folder, 'patroni.yml')]), place.folder)
    const member: PatroniMember = {
      name,
      port: place.port,
      checksPort: place.checksPort,
      patroni: begin(),
      start: () => void (member.patroni = begin()),
    }
    members.push(member)
    if (name === 'one') await answering(() => leaderOf(members))
  }

  const synchronous = async () => {
    await answering(async () => {
      const leader = await leaderOf(members)
      const standby = members.find((member) => member !== leader)!
      return leader !== null && (await roleIs(standby, 'sync')) ? leader : null
    }).catch((error: unknown) => {
      const logs = members.map(({ patroni }) => `${patroni.stdout()}${patroni.stderr()}`.slice(-1_500))
      throw new Error(logs.join('\n---\n'), { cause: error })
    })
  }
  await synchronous()
  return {
    members,
    leader: () => answering(() => leaderOf(members)),
    synchronous,
    etcd: {
      async restart() {
        etcd.signal('SIGKILL')
        await etcd.exited
        etcd = startEtcd()
      },
    },
    async stop() {
      for (const { patroni } of members) patroni.signal('SIGTERM') // also stops its server
      await Promise.all(members.map(({ patroni }) => patroni.exited))
      etcd.signal('SIGKILL')
      await etcd.exited
    },
  }
}

async function roleIs({ checksPort }: PatroniMember, role: 'primary' | 'sync'): Promise<boolean> {
  const signal = AbortSignal.timeout(2_000)
  const answer = await fetch(`http://127.0.0.1:${checksPort}/${role}`, { signal }).catch(() => null)
  return answer?.status === 200
}

async function leaderOf(members: PatroniMember[]): Promise<PatroniMember | null> {
  for (const member of members) if (await roleIs(member, 'primary')) return member
  return null
}

async function answering<T>(ask: () => Promise<T | null>): Promise<T> {
  for (const endMs = performance.now() + startMs; ; await Bun.sleep(200)) {
    const answer = await ask()
    if (answer !== null) return answer
    if (performance.now() > endMs) throw new Error('Patroni has no leader with a synchronous standby')
  }
}
