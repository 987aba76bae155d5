/**
 * Receives access logs over syslog: nginx `access_log syslog:server=…`, HAProxy, Apache through logger.
 *
 * Syslog over datagrams is not acknowledged: what is lost before it arrives nobody notices, and what waits here is lost
 * when the process ends. What does not fit into the memory is dropped and counted.
 */
import { readFileSync } from 'node:fs'
import type { Clock } from '../clock.ts'
import { isoTime } from '../clock.ts'
import { UsageError } from '../errors.ts'
import { newToken } from '../ids.ts'
import { limits } from '../limits.ts'
import type { Log } from '../log.ts'
import { optionTables } from '../text/option-tables.ts'
import { trustReader } from '../http/address.ts'
import { readMessage } from './line-prefix.ts'
import { createStreamFormat, type StreamFormat } from './detect-format.ts'
import type { AccessReceiver, Sender } from './receiver.ts'
import { receiveDatagrams } from './unix-datagrams.ts'

export interface SyslogRule {
  siteId: string
  org: string // slug or id
  at: { host: string; port: number } | { unix: string }
  trustedProxies: string[]
}

export interface SyslogReport {
  siteId: string
  org: string
  listen: string
  received: number // lines, since the server started
  dropped: number // not stored: too long, too many at once, or waiting when the server ended
  bad: number // stored as lines that fit no format
  lastAt: string | null
  format: string | null
  problem: string | null
}

const rulesMax = 20

export const defaultOrg = 'default'

const fields = ['site', 'address', 'org', 'trusted-proxy']

/** `SITE=udp:HOST:PORT` or `SITE=unix:PATH`, separated by commas, or the tables of the file as JSON. */
export function syslogRules(text: string): SyslogRule[] {
  const tables = optionTables(text, 'listen-syslog', fields)
  const rules =
    tables?.map((table) => {
      const rule = ruleOf(table.text('site'), table.text('address'), table.text('org', defaultOrg))
      rule.trustedProxies = table.texts('trusted-proxy')
      trustReader(rule.trustedProxies)
      return rule
    }) ?? pairsOf(text)
  if (rules.length > rulesMax) throw new UsageError(`syslog can have at most ${rulesMax} addresses`)
  return rules
}

function pairsOf(text: string): SyslogRule[] {
  const pairs = text.split(',').filter((pair) => pair.trim() !== '')
  return pairs.map((pair) => {
    const equalsIndex = pair.indexOf('=')
    return ruleOf(
      pair.slice(0, Math.max(0, equalsIndex)).trim(),
      pair.slice(equalsIndex + 1).trim(),
      defaultOrg,
    )
  })
}

function ruleOf(siteId: string, address: string, org: string): SyslogRule {
  if (address.startsWith('tcp:'))
    throw new UsageError(
      `syslog over TCP is not received: "${address}"`,
      'use udp:HOST:PORT, or let rsyslog or syslog-ng write a file, and watch that',
    )
  const [, kind, target = ''] = /^(udp|unix):(.+)$/.exec(address) ?? []
  const [, v6, name = '', digits = ''] = /^(?:\[([0-9A-Fa-f:.]+)\]|([\w.-]+)):(\d{1,5})$/.exec(target) ?? []
  const port = Number(digits)
  const isUdp = kind === 'udp' && digits !== '' && port <= 65_535
  if (siteId === '' || siteId.length > limits.idCharsMax || !(isUdp || kind === 'unix'))
    throw new UsageError(`"${siteId}=${address}" is not SITE=udp:HOST:PORT or SITE=unix:PATH`)
  return { siteId, org, at: isUdp ? { host: v6 ?? name, port } : { unix: target }, trustedProxies: [] }
}

const waitingBytesMax = 8 * 1024 * 1024
const batchBytes = 512 * 1024
const flushMs = 500
const retryMs = 1_000

export interface SyslogServices {
  clock: Clock
  log: Pick<Log, 'info' | 'warn'>
  accessReceiver: AccessReceiver
  /** Whom the lines belong to. Rejects while the database is away. */
  senderOf(rule: SyslogRule): Promise<Sender>
}

export interface SyslogListener {
  address: string // with the port that was picked for 0
  report(): SyslogReport
  stop(): Promise<void>
}

/** Listens, and stores what arrives in batches. Rejects when the address cannot be used. */
export async function listenSyslog(services: SyslogServices, rule: SyslogRule): Promise<SyslogListener> {
  const { clock, log } = services
  const { siteId, org, at: listenAddress } = rule
  const report: SyslogReport = {
    siteId,
    org,
    listen: '',
    received: 0,
    dropped: 0,
    bad: 0,
    lastAt: null,
    format: null,
    problem: null,
  }
  let waiting: Waiting = new Map()
  let waitingBytes = 0
  let isStopping = false
  let storing = Promise.resolve()
  const receive = (datagram: Buffer, peer: string): void => {
    const { line, sender } = readMessage(datagram)
    report.lastAt = isoTime(clock.now())
    if (waitingBytes + line.length > waitingBytesMax) {
      report.dropped++
      return
    }
    report.received++
    waitingBytes += line.length + 1
    const name = `${peer} ${sender}`
    const lines = waiting.get(name)
    if (lines === undefined) waiting.set(name, [line])
    else lines.push(line)
    if (waitingBytes >= batchBytes) flush()
  }
  const cut = (): void => {
    report.lastAt = isoTime(clock.now())
    report.dropped++
  }
  const store = batchStorer(services, rule, report, () => isStopping)
  let isRunning = false
  function flush(): void {
    if (isRunning || waiting.size === 0) return
    isRunning = true
    storing = (async () => {
      while (waiting.size > 0) {
        const lines = waiting
        const bytes = waitingBytes
        waiting = new Map()
        await store(lines)
        waitingBytes -= bytes // counts until it is stored
      }
      isRunning = false
    })()
  }
  const socket = await openSocket(listenAddress, receive, cut)
  report.listen = socket.address
  const timer = setInterval(flush, flushMs)
  log.info('syslog_listening', { listen: report.listen, site: siteId })
  return {
    address: report.listen,
    report: () => ({ ...report, dropped: report.dropped + socket.droppedByKernel() }),
    async stop() {
      isStopping = true
      socket.close()
      clearInterval(timer)
      flush()
      await storing
    },
  }
}

/** Lines by who sent them. */
type Waiting = Map<string, string[]>

/** More programs than this send to no address. Their names are in datagrams, which anybody may send. */
const sendersMax = 1_000

/** Stores a batch. Every sender has a format of its own. */
function batchStorer(
  services: SyslogServices,
  rule: SyslogRule,
  report: SyslogReport,
  isStopping: () => boolean,
): (waiting: Waiting) => Promise<void> {
  const streams = new Map<string, StreamFormat>()
  const streamOf = (sender: string): StreamFormat => {
    const stream = streams.get(sender) ?? createStreamFormat()
    streams.delete(sender)
    streams.set(sender, stream)
    if (streams.size > sendersMax) streams.delete(streams.keys().next().value!)
    return stream
  }
  return async (waiting) => {
    const byFormat = new Map<string, string[]>()
    let withoutAgents: string | null = null
    for (const [sender, lines] of waiting) {
      const stream = streamOf(sender)
      for (const [format, formatLines] of stream.divide(lines)) {
        const existingLines = byFormat.get(format)
        if (existingLines === undefined) byFormat.set(format, formatLines)
        else for (const line of formatLines) existingLines.push(line)
      }
      const problem = stream.problem()
      if (problem !== null) withoutAgents = `what ${sender.trim()} sends ${problem}`
    }
    report.format = formatsOf(streams)
    for (const [format, lines] of byFormat)
      await storeLines(services, rule, report, isStopping, format, lines)
    report.problem ??= withoutAgents
  }
}

/** All formats that are received, in the order in which their senders began. */
function formatsOf(streams: Map<string, StreamFormat>): string | null {
  const names = new Set([...streams.values()].map((stream) => stream.name()).filter((name) => name !== null))
  return names.size === 0 ? null : [...names].join(', ')
}

/** Stores lines of one format, and repeats it until they are stored or the server stops. */
async function storeLines(
  { accessReceiver, log, senderOf }: SyslogServices,
  rule: SyslogRule,
  report: SyslogReport,
  isStopping: () => boolean,
  format: string,
  lines: string[],
): Promise<void> {
  const text = `${lines.join('\n')}\n`
  const source = `syslog:${newToken()}`
  const batch = { source, format, path: report.listen, heading: '', from: 0, to: text.length, text }
  for (;;) {
    try {
      const sender = await senderOf(rule)
      const { sums } = await accessReceiver.store(sender, { ...batch, cutTail: null, epoch: '' }, true)
      report.bad += sums.bad
      report.problem = null
      return
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      if (report.problem === null) log.warn('syslog_lines_wait', { listen: report.listen, message })
      report.problem = message
      if (isStopping()) {
        report.dropped += lines.length
        log.warn('syslog_lines_dropped', { listen: report.listen, lines: lines.length, message })
        return
      }
      await Bun.sleep(retryMs)
    }
  }
}

interface Socket {
  address: string
  droppedByKernel(): number
  close(): void
}

async function openSocket(
  listenAddress: SyslogRule['at'],
  receive: (datagram: Buffer, peer: string) => void,
  cut: () => void,
): Promise<Socket> {
  if ('unix' in listenAddress) {
    const socket = receiveDatagrams(listenAddress.unix, (datagram) => receive(datagram, ''), cut)
    return { address: `unix:${listenAddress.unix}`, droppedByKernel: () => 0, ...socket }
  }
  const { host, port } = listenAddress
  try {
    const socket = await Bun.udpSocket({
      hostname: host,
      port,
      socket: { data: (_, data, __, peer) => receive(data, peer) },
    })
    const shown = host.includes(':') ? `[${host}]` : host
    return {
      address: `udp:${shown}:${socket.port}`,
      droppedByKernel: () => kernelDrops(socket.port),
      close: () => socket.close(),
    }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new UsageError(`cannot listen on udp:${host}:${port}: ${reason}`)
  }
}

/** Datagrams that the kernel dropped because its buffer was full; 0 where there is no /proc. */
function kernelDrops(port: number): number {
  let drops = 0
  for (const file of ['/proc/net/udp', '/proc/net/udp6']) {
    try {
      for (const line of readFileSync(file, 'utf8').trim().split('\n').slice(1)) {
        const fields = line.trim().split(/\s+/)
        const [, local = ''] = fields
        if (Number.parseInt(local.split(':').at(-1) ?? '', 16) === port) drops += Number(fields.at(-1)) || 0
      }
    } catch {
      // Another system.
    }
  }
  return drops
}
