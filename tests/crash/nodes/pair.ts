/** Two PostgreSQL servers, a primary and its synchronous standby, that change roles. */
import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../support/free-port.ts'
import { clusterFolder, startPostgres, type Cluster } from '../../support/postgres.ts'

export interface Member {
  name: string
  cluster: Cluster
  folder: string
  port: number
  /** Answers 200 while this is the primary, as Patroni does. */
  checksPort: number
}

export interface Pair {
  members: [Member, Member]
  primary(): Member
  standby(): Member
  /** Resolves when commits wait for the standby. */
  synchronous(): Promise<void>
  /** Kills the primary or, when it is partitioned, leaves it running for a while; the standby takes over. */
  failOver(kind: 'killed' | 'partitioned'): Promise<void>
  /** Takes the space of the primary's file system, or gives it back. */
  fill(member: Member): void
  free(member: Member): void
  /** Starts a primary again that ended, for example because its disk was full. */
  revive(): Promise<void>
  stop(): Promise<void>
}

const settings = {
  wal_level: 'replica',
  max_wal_senders: '6',
  wal_keep_size: '64MB',
  hot_standby: 'on',
  max_wal_size: '64MB',
  min_wal_size: '32MB',
  wal_receiver_status_interval: '1s',
  wal_receiver_timeout: '3s',
  wal_sender_timeout: '3s',
  wal_retrieve_retry_interval: '200ms',
}

/** Small enough to fill at once. Without the right to mount, the disk cannot be filled. */
const diskMiB = 400

async function folderOnDisk(): Promise<{ folder: string; isSmall: boolean }> {
  const folder = await clusterFolder()
  const { uid, gid } = await Bun.file(folder).stat()
  const options = `size=${diskMiB}m,mode=0700,uid=${uid},gid=${gid}`
  const mount = Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', options, 'tmpfs', folder])
  return { folder, isSmall: mount.exitCode === 0 }
}

const partitionedMs = 1_500
const standbyName = 'standby'
const start = { fsync: true, settings }

/** The members, of which the first begins as primary. `isLeader` decides whom the health checks name. */
async function startMembers(isLeader: (name: string) => boolean) {
  const diskA = await folderOnDisk()
  const diskB = await folderOnDisk()
  const ports = [freePort(), freePort()] as const
  const member = (name: string, cluster: Cluster, folder: string, port: number): Member => {
    const fetch = () => new Response(name, { status: isLeader(name) ? 200 : 503 })
    const checks = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch })
    checks.unref()
    return { name, cluster, folder, port, checksPort: checks.port! }
  }
  const a = await startPostgres({ ...start, folder: diskA.folder, port: ports[0] })
  const standbyOf = { port: ports[0], name: standbyName }
  const b = await startPostgres({ ...start, folder: diskB.folder, port: ports[1], standbyOf })
  const members: [Member, Member] = [
    member('a', a, diskA.folder, ports[0]),
    member('b', b, diskB.folder, ports[1]),
  ]
  return { members, isSmall: diskA.isSmall && diskB.isSmall }
}

/** Whose acknowledgement the commits of a primary wait for; nobody's when empty. */
async function waitForStandby({ cluster }: Member, names: string): Promise<void> {
  await cluster.sql(`ALTER SYSTEM SET synchronous_standby_names = '${names}'`)
  await cluster.sql('SELECT pg_reload_conf()')
}

async function isFollowed({ cluster }: Member): Promise<void> {
  const count = `SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'sync'`
  for (const endMs = performance.now() + 60_000; ; await Bun.sleep(50)) {
    if ((await cluster.sql(count).catch(() => '0')) === '1') return
    if (performance.now() > endMs) throw new Error('the standby does not follow')
  }
}

/** From now on the primary waits for its standby in vain, so it acknowledges nothing. */
async function cutOff({ cluster }: Member): Promise<void> {
  await cluster.sql(`ALTER SYSTEM SET primary_conninfo = ''`)
  await cluster.sql('SELECT pg_reload_conf()')
  const receivers = 'SELECT count(*) FROM pg_stat_wal_receiver'
  while ((await cluster.sql(receivers)) !== '0') await Bun.sleep(20)
  await Bun.sleep(partitionedMs)
}

export async function startPair(): Promise<Pair> {
  let leader = 'a'
  const { members, isSmall } = await startMembers((name) => name === leader)
  let primary = members[0]
  const standby = () => members.find((member) => member !== primary)!
  await waitForStandby(primary, standbyName)
  await isFollowed(primary)

  return {
    members,
    primary: () => primary,
    standby,
    synchronous: () => isFollowed(primary),
    async failOver(kind) {
      await isFollowed(primary) // without it acknowledged data would be on the primary alone
      const old = primary
      const next = standby()
      if (kind === 'killed') await old.cluster.kill()
      else await cutOff(next)
      await next.cluster.promote()
      primary = next
      if (kind === 'partitioned') await Bun.sleep(partitionedMs) // nodes still write to the old one
      leader = next.name
      await waitForStandby(next, '')
      if (kind === 'partitioned') await old.cluster.kill()
      // The former primary begins again as a copy of the new one.
      rmSync(join(old.folder, 'data'), { recursive: true, force: true })
      const standbyOf = { port: next.port, name: standbyName }
      old.cluster = await startPostgres({ ...start, folder: old.folder, port: old.port, standbyOf })
      await waitForStandby(next, standbyName)
      await isFollowed(next)
    },
    fill({ folder }) {
      if (!isSmall) return
      const file = openSync(join(folder, 'ballast'), 'w')
      try {
        while (writeSync(file, Buffer.alloc(1 << 16)) > 0);
      } catch {
        // It is full.
      }
      closeSync(file)
    },
    free: ({ folder }) => rmSync(join(folder, 'ballast'), { force: true }),
    async revive() {
      const isUp = await primary.cluster.sql('SELECT 1').catch(() => null)
      if (isUp === null) await primary.cluster.restart()
    },
    async stop() {
      await Promise.all(members.map(({ cluster }) => cluster.kill()))
      for (const { folder } of members) {
        Bun.spawnSync(['umount', folder])
        rmSync(folder, { recursive: true, force: true })
      }
    },
  }
}
