/** Debian's haproxy with the configuration of the guide, whose addresses are replaced by those of a test. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { haproxyPath } from '../../scripts/postgres.ts'
import { run } from './process.ts'
import { tempDir } from './temp-dir.ts'
import { until } from './until.ts'

/** Without haproxy the tests behind it are skipped; `npm test` says what to install. */
export const hasHaproxy = haproxyPath() !== null

export interface ProxyPorts {
  /** Of the proxy itself. */
  http: number
  database: number
  nodes: number[]
  /** The first of each is the port of PostgreSQL, the second that of its health checks. */
  servers: [port: number, checks: number][]
}

export interface Proxy {
  /** Ends it at once, with its connections, and starts it again. */
  restart(): Promise<void>
  stop(): Promise<void>
}

/** The configuration of the guide, with a shorter time between checks. */
function configured({ http, database, nodes, servers }: ProxyPorts): string {
  let node = 0
  let server = 0
  return readFileSync(join(import.meta.dir, '../../server/guide/haproxy.cfg'), 'utf8')
    .replace('bind 0.0.0.0:8080', `bind 127.0.0.1:${http}`)
    .replace('bind 127.0.0.1:5432', `bind 127.0.0.1:${database}`)
    .replace(/10\.0\.0\.1\d:8080/g, () => `127.0.0.1:${nodes[node++]}`)
    .replace(/10\.0\.0\.2\d:5432/g, () => {
      const [port, checks] = servers[server++]!
      return `127.0.0.1:${port} port ${checks}`
    })
    .replace(/inter 1s/g, 'inter 300ms')
}

export async function startHaproxy(ports: ProxyPorts): Promise<Proxy> {
  const path = haproxyPath()
  if (path === null) throw new Error('haproxy is not installed: apt-get install haproxy')
  const dir = tempDir('haproxy')
  writeFileSync(dir.join('haproxy.cfg'), configured(ports))
  const listens = async () =>
    (await fetch(`http://127.0.0.1:${ports.http}/healthz`).catch(() => null)) !== null

  async function start() {
    const child = run([path!, '-db', '-f', dir.join('haproxy.cfg')], { cwd: '/', env: {} })
    for (const endMs = performance.now() + 20_000; !(await listens()); await Bun.sleep(20)) {
      if (performance.now() > endMs || !existsSync(`/proc/${child.pid}`))
        throw new Error(`haproxy did not start\n${child.stderr()}`)
    }
    return child
  }

  let running = await start()
  async function end() {
    running.signal('SIGKILL')
    await running.exited
    await until(() => !existsSync(`/proc/${running.pid}`))
  }
  return {
    async restart() {
      await end()
      running = await start()
    },
    async stop() {
      await end()
      dir.remove()
    },
  }
}
