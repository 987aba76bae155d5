/**
 * Checks of a running server: its state, and that each outgoing connection belongs to a webhook or an identity
 * provider.
 */
import type { AccessReceiver } from '../../access/receiver.ts'
import type { SyslogListener } from '../../access/syslog.ts'
import { holdSentence } from '../../system/clock-hold.ts'
import { ok, warning, type Check } from './check.ts'
import { checkSkew, checkUpkeep } from './shared-checks.ts'
import { readiness, type Check as Ready } from '../health/readiness.ts'
import { upkeepProblem } from '../health/upkeep.ts'
import { outboundCalls, type OutboundCall } from '../../system/outbound.ts'
import { readFileSync, readdirSync, readlinkSync } from 'node:fs'
import type { SharedNode } from '../../system/shared-node.ts'
import type { ClockGuard, ClockHold } from '../../system/clock-guard.ts'
import type { Diagnosed } from './options.ts'
import type { Store } from '../../../db/contract/store.ts'
import type { DiskWatch } from '../../system/disk.ts'
import type { MemoryWatch } from '../health/memory.ts'
import type { Jobs } from '../../system/scheduler.ts'

export interface ServerState {
  ready: Ready[]
  outbound: Outbound
  clock: ClockHold | null
  aheadMs: number | null // of the database's clock; null when no other node shares the database
  upkeep: string | null // what is wrong with the background work
  reports: string[] | null // scheduled ones that fail; null: none is scheduled
  lostLines: LostLines
  options: Diagnosed // that it was started with
  url: string // of its listener
  pid: number
}

export function stateChecks({
  ready,
  outbound,
  clock,
  aheadMs,
  upkeep,
  reports,
  lostLines,
}: Omit<ServerState, 'options' | 'url' | 'pid'>): Check[] {
  const checks = ready.map(({ name, ok, detail }) => ({
    id: `server-${name}`,
    status: ok ? ('ok' as const) : ('failure' as const),
    detail: `Running server, ${name}: ${detail}.`,
    hint: ok ? null : 'see its log',
  }))
  const shared = aheadMs === null ? [] : [checkSkew(aheadMs), checkUpkeep(upkeep)]
  const logs = checkLines(lostLines)
  return [...checks, checkHold(clock), ...shared, ...checkReports(reports), logs, checkOutbound(outbound)]
}

/** Lines of access logs of which nothing is stored, since the server started. */
interface LostLines {
  bad: number
  dropped: number
}

/** Whether every line of an access log that the server got was read. */
function checkLines({ bad, dropped }: LostLines): Check {
  if (bad === 0 && dropped === 0) return ok('access-lines', 'Access logs: every line was read.')
  const number = (value: number): string => value.toLocaleString('en')
  const lost = `${number(bad)} lines fit no format, ${number(dropped)} syslog datagrams were dropped`
  return warning(
    'access-lines',
    `Access logs, since the server started: ${lost}.`,
    'see Settings, Sources, for the log, and name its format',
  )
}

function checkReports(problems: string[] | null): Check[] {
  if (problems === null) return []
  const [first] = problems
  if (first === undefined) return [ok('reports', 'Scheduled reports: none is failing.')]
  const more = problems.length === 1 ? '' : ` ${problems.length - 1} more fail.`
  return [warning('reports', `A ${first}${more}`, 'check the folder or the mail server; the server retries')]
}

/** Whether retention waits because the clock jumped. */
export function checkHold(hold: ClockHold | null): Check {
  if (hold === null) return ok('clock-jump', 'No unconfirmed clock jump.')
  return warning(
    'clock-jump',
    holdSentence(hold),
    'set the clock; if it is right, run "sightglass clock confirm"',
  )
}

export interface ServerStateServices {
  store: Store
  clockGuard: ClockGuard
  node: SharedNode | null
  version: string
  disk: DiskWatch
  memory: MemoryWatch
  jobs: Pick<Jobs, 'late' | 'report'>
  accessReceiver: Pick<AccessReceiver, 'badLines'>
  syslogListeners: SyslogListener[]
  scheduledReports: { problems(): string[] | null }
  diagnosed: Diagnosed
  state: { isDraining: boolean; storeFailed: string | null }
}

export async function serverState(services: ServerStateServices, url: string): Promise<ServerState> {
  const ready = await readiness(services)
  const clock = services.clockGuard.hold()
  const outbound = { calls: outboundCalls(), open: outwardConnections() }
  const aheadMs = services.node?.aheadMs() ?? null
  const upkeep = upkeepProblem(services.store.behind()?.upkeep ?? null)
  const reports = services.scheduledReports.problems()
  const lostLines = {
    bad: services.accessReceiver.badLines().reduce((sum, { lines }) => sum + lines, 0),
    dropped: services.syslogListeners.reduce((sum, listener) => sum + listener.report().dropped, 0),
  }
  return {
    ready,
    clock,
    aheadMs,
    upkeep,
    reports,
    lostLines,
    outbound,
    options: services.diagnosed,
    url,
    pid: process.pid,
  }
}

interface Connection {
  address: string
  port: number
}

const states = { established: '01', synSent: '02', listening: '0A' } as const

/** Outgoing connections of this process as the kernel lists them; null where it does not. */
export function outwardConnections(proc = '/proc/self'): Connection[] | null {
  const socketInodes = ownSockets(proc)
  if (socketInodes === null) return null
  const rows = ['tcp', 'tcp6', 'udp', 'udp6'].flatMap((table) => tableRows(`${proc}/net/${table}`, table))
  const ownRows = rows.filter(({ inode }) => socketInodes.has(inode))
  const listening = new Set(
    ownRows.filter(({ state }) => state === states.listening).map(({ localPort }) => localPort),
  )
  const isOutgoing = ({ state, localPort, port }: Row) =>
    (state === states.established || state === states.synSent) && port !== 0 && !listening.has(localPort)
  return ownRows.filter(isOutgoing).map(({ address, port }) => ({ address, port }))
}

function ownSockets(proc: string): Set<string> | null {
  try {
    const links = readdirSync(`${proc}/fd`).map((fd) => {
      try {
        return readlinkSync(`${proc}/fd/${fd}`)
      } catch {
        return '' // closed in the meantime
      }
    })
    return new Set(
      links.map((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1]).filter((inode) => inode !== undefined),
    )
  } catch {
    return null
  }
}

interface Row extends Connection {
  state: string
  localPort: number
  inode: string
}

function tableRows(path: string, table: string): Row[] {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch {
    return [] // a machine without IPv6
  }
  return text
    .split('\n')
    .slice(1)
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const cells = line.trim().split(/\s+/)
      const [local = '', remote = '', state = ''] = cells.slice(1)
      const [address = '', port = '0'] = remote.split(':')
      return {
        address: table.endsWith('6') ? ipv6(address) : ipv4(address),
        port: Number.parseInt(port, 16),
        localPort: Number.parseInt(local.split(':')[1] ?? '0', 16),
        state,
        inode: cells[9] ?? '',
      }
    })
}

/** Each 32-bit word has the byte order of the machine, and every supported machine is little-endian. */
function bytesOf(hex: string): number[] {
  const words = hex.match(/.{8}/g) ?? []
  return words.flatMap((word) =>
    (word.match(/../g) ?? []).toReversed().map((byte) => Number.parseInt(byte, 16)),
  )
}

function ipv4(hex: string): string {
  return bytesOf(hex).join('.')
}

function ipv6(hex: string): string {
  const bytes = bytesOf(hex)
  const mapped = bytes.slice(0, 10).every((byte) => byte === 0) && bytes[10] === 255 && bytes[11] === 255
  if (mapped) return bytes.slice(12).join('.')
  const groups = Array.from({ length: 8 }, (_, index) =>
    ((bytes[index * 2]! << 8) | bytes[index * 2 + 1]!).toString(16),
  )
  // The shortest form, so that addresses compare equal.
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1)
}

interface Outbound {
  calls: OutboundCall[] // since the start
  open: Connection[] | null // now; null where the kernel does not list them
}

const shownMax = 5

/** DNS queries go to the name servers of the machine. */
const dnsPort = 53

export function checkOutbound({ calls, open }: Outbound): Check {
  const unexplained = (open ?? []).filter(
    (connection) => connection.port !== dnsPort && !calls.some((call) => explains(call, connection)),
  )
  const [first] = unexplained
  if (first !== undefined) {
    const more = unexplained.length === 1 ? '' : ` and ${unexplained.length - 1} more`
    return warning(
      'outbound',
      `The server is connected to ${first.address} port ${first.port}${more}, but no webhook or provider explains it.`,
      'check whether code was loaded into the process: its environment, LD_PRELOAD, BUN_OPTIONS',
    )
  }
  if (calls.length === 0) return ok('outbound', 'No outgoing connection since the server started.')
  const names = calls.toReversed().map(({ what: callKind, host, address, port, times }) => {
    const addressText = address === null || address === host ? '' : ` (${address})`
    if (callKind === 'database') return `database ${host} port ${port}`
    return `${callKind} ${host}${addressText} port ${port}, ${times} ${times === 1 ? 'time' : 'times'}`
  })
  const omittedText = names.length > shownMax ? `; and ${names.length - shownMax} more` : ''
  return ok(
    'outbound',
    `Outgoing connections since the server started: ${names.slice(0, shownMax).join('; ')}${omittedText}.`,
  )
}

function explains(call: OutboundCall, { address, port }: Connection): boolean {
  return call.port === port && (call.address === null || call.address === address)
}
