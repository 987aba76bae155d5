/** Nodes of the compiled executable behind haproxy, on a pair of PostgreSQL servers; one of them through pgbouncer. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startAppliance, type Appliance } from '../../support/binary.ts'
import { startHaproxy, type Proxy } from '../../support/haproxy.ts'
import { freePort } from '../../support/free-port.ts'
import { hasPooler, startPooler, type Pooler } from '../../support/postgres.ts'
import { run, type Running } from '../../support/process.ts'
import { tempDir, type TempDir } from '../../support/temp-dir.ts'
import { epochMs } from './receiver.ts'

/** Where PostgreSQL is: each server with the port that answers 200 on the primary. */
export type Servers = [port: number, checks: number][]

export interface Fleet {
  url: string
  /** Of the primary, wherever it is. */
  databaseUrl: string
  nodes: FleetNode[]
  startsMs: number[] // of nodes that were started again, in `epochMs`
  proxy: Proxy
  pooler: Pooler | null
  receiver: { url: string; reports: string; child: Running }
  keys: { ingest: string; secret: string }
  /** A command of the executable on the database. */
  cli: Appliance['cli']
  /** Runs SQL on the primary, past the proxy. */
  sql(text: string): Promise<string>
  /** Answers as the owner, signed in. */
  cookie: string
  dir: TempDir
  /** Settles when every stopped node runs again. */
  continued: Promise<void>
  stop(): Promise<void>
}

export interface FleetNode {
  name: string
  appliance: Appliance
  isStopped: boolean
  /** Starts it again after it ended; `clockMs` sets its clock off. */
  start(clockMs?: number): Promise<void>
}

export const fakeTime = '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1'
const owner = { email: 'owner@example.com', password: 'a window in a vessel' }

const serveOptions = [
  '--webhook-allow',
  '127.0.0.0/8',
  '--dispatch-cron',
  '* * * * * *',
  '--webhook-backoff',
  '1s,1s,1s',
  '--rate-limit-gateway',
  'off',
  '--rate-limit-ingest',
  'off',
  '--log-level',
  'info',
]

export async function startFleet(servers: Servers, sql: Fleet['sql'], nodeCount = 3): Promise<Fleet> {
  const dir = tempDir('nodes')
  writeFileSync(dir.join('keys'), '11'.repeat(32), { mode: 0o600 })
  const ports = Array.from({ length: nodeCount }, freePort)
  const http = freePort()
  const database = freePort()
  const proxy = await startHaproxy({ http, database, nodes: ports, servers })
  const databaseUrl = `postgres://postgres@127.0.0.1:${database}/postgres`
  const server = { url: databaseUrl, socketFolder: '127.0.0.1' }
  const pooler = hasPooler ? await startPooler(server, 12) : null
  const url = `http://127.0.0.1:${http}`
  const startsMs: number[] = []
  const startNode = async (index: number): Promise<FleetNode> => {
    const name = `node-${index + 1}`
    const isPooled = pooler !== null && index === nodeCount - 1
    const env = {
      SIGHTGLASS_DATABASE: isPooled ? pooler.url('postgres') : databaseUrl,
      SIGHTGLASS_KEY_FILE: dir.join('keys'),
      SIGHTGLASS_ADMIN_EMAIL: owner.email,
      SIGHTGLASS_ADMIN_PASSWORD: owner.password,
    }
    const begin = (clockMs: number) => {
      const seconds = Math.round(clockMs / 1_000)
      const preload = { LD_PRELOAD: fakeTime, FAKETIME: `${seconds > 0 ? '+' : ''}${seconds}s` }
      const fake = clockMs === 0 ? {} : { ...preload, FAKETIME_DONT_FAKE_MONOTONIC: '1' }
      const args = ['--node-name', name, '--listen', `127.0.0.1:${ports[index]}`, ...serveOptions]
      return restarted(() => startAppliance({ dataDir: dir.join(name), env: { ...env, ...fake }, args }))
    }
    const node: FleetNode = {
      name,
      isStopped: false,
      appliance: await begin(0),
      async start(clockMs = 0) {
        startsMs.push(epochMs())
        node.appliance = await begin(clockMs)
      },
    }
    return node
  }
  const nodes = [await startNode(0)]
  nodes.push(...(await Promise.all(ports.slice(1).map((_, index) => startNode(index + 1)))))
  const cli: Appliance['cli'] = (...args) => nodes[0]!.appliance.cli(...args)
  const keyOf = async (...args: string[]) =>
    (JSON.parse((await cli('key', 'create', '--label', 'x', '--json', ...args)).stdout) as { key: string })
      .key
  const keys = { ingest: await keyOf('--kind', 'ingest'), secret: await keyOf('--kind', 'secret') }
  const receiver = await startReceiver(dir)
  const added = await fetch(`${url}/v1/webhooks/endpoints`, {
    method: 'POST',
    headers: { authorization: `Bearer ${keys.secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ url: `${receiver.url}/in`, retryWaits: Array.from({ length: 8 }, () => 1) }),
  })
  if (added.status !== 201) throw new Error(`the endpoint: ${added.status} ${await added.text()}`)
  return {
    url,
    databaseUrl,
    nodes,
    startsMs,
    proxy,
    pooler,
    receiver,
    keys,
    cli,
    dir,
    sql,
    cookie: await signIn(url),
    continued: Promise.resolve(),
    async stop() {
      receiver.child.signal('SIGKILL')
      await Promise.all(nodes.map(({ appliance }) => appliance.kill()))
      await pooler?.stop()
      await proxy.stop()
      dir.remove()
    },
  }
}

/** As a service manager starts a node again that ends because its database is away. */
async function restarted(start: () => Promise<Appliance>): Promise<Appliance> {
  for (let tries = 1; ; tries++) {
    try {
      return await start()
    } catch (error) {
      if (tries === 20) throw error
      await Bun.sleep(500)
    }
  }
}

async function startReceiver(dir: TempDir): Promise<Fleet['receiver']> {
  const reports = dir.join('attempts')
  writeFileSync(reports, '')
  const command = [process.execPath, join(import.meta.dir, 'receiver.ts'), reports]
  const child = run(command, { cwd: dir.path, env: { PATH: process.env['PATH'] ?? '' } })
  const port = await child.line((line) => /^listening on (\d+)$/.exec(line)?.[1] ?? null, 20_000)
  return { url: `http://127.0.0.1:${port}`, reports, child }
}

async function signIn(url: string): Promise<string> {
  const headers = { 'content-type': 'application/json', origin: url }
  const answer = await fetch(`${url}/api/sign-in`, { method: 'POST', headers, body: JSON.stringify(owner) })
  if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`)
  return answer.headers.get('set-cookie')?.split(';')[0] ?? ''
}
