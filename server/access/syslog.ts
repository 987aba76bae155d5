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
import { createStreamFormat, type StreamFormat } from './detect-format.ts'
import { prefixEnd } from './line-prefix.ts'
import type { AccessReceiver, Sender } from './receiver.ts'
import { receiveDatagrams } from './unix-datagrams.ts'

export interface SyslogRule {
  siteId: string
  org: string // slug or id
  at: { host: string; port: number } | { unix: string }
}

export interface SyslogReport {
  siteId: string
  org: string
  listen: string
  received: number // lines, since the server started
  dropped: number
  lastAt: string | null
  format: string | null
  problem: string | null
}

const rulesMax = 20

export const defaultOrg = 'default'

const fields = ['site', 'address', 'org']

/** `SITE=udp:HOST:PORT` or `SITE=unix:PATH`, separated by commas, or the tables of the file as JSON. */
export function syslogRules(text: string): SyslogRule[] {
  const tables = optionTables(text, 'listen-syslog', fields)
  const rules =
    tables?.map((table) =>
      ruleOf(table.text('site'), table.text('address'), table.text('org', defaultOrg)),
    ) ?? pairsOf(text)
  if (rules.length > rulesMax) throw new UsageError(`syslog can have at most ${rulesMax} addresses`)
  return rules
}

function pairsOf(text: string): SyslogRule[] {
  const pairs = text.split(',').filter((each) => each.trim() !== '')
  return pairs.map((pair) => {
    const at = pair.indexOf('=')
    return ruleOf(pair.slice(0, Math.max(0, at)).trim(), pair.slice(at + 1).trim(), defaultOrg)
  })
}

function ruleOf(siteId: string, address: string, org: string): SyslogRule {
  const [, kind, rest = ''] = /^(udp|unix):(.+)$/.exec(address) ?? []
  const [, v6, name = '', digits = ''] = /^(?:\[([0-9A-Fa-f:.]+)\]|([\w.-]+)):(\d{1,5})$/.exec(rest) ?? []
  const port = Number(digits)
  const isUdp = kind === 'udp' && digits !== '' && port <= 65_535
  if (siteId === '' || siteId.length > limits.idCharsMax || !(isUdp || kind === 'unix'))
    throw new UsageError(`"${siteId}=${address}" is not SITE=udp:HOST:PORT or SITE=unix:PATH`)
  return { siteId, org, at: isUdp ? { host: v6 ?? name, port } : { unix: rest } }
}

/** Of a message without a tag. Whether a host follows, only the format of the line can tell. */
const priority = /^<\d{1,3}>(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d )?/

/** The line of a datagram. A line feed in it would make a second line, which anybody could then forge. */
export function messageOf(datagram: Buffer): string {
  const text = datagram.toString('latin1').replace(/[\0\r\n]+$/, '')
  const start = prefixEnd(text, 0, text.length)
  const line = start > 0 ? text.slice(start) : text.replace(priority, '')
  return line.replaceAll(/[\r\n]/g, ' ')
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
  const { siteId, org, at } = rule
  const report: SyslogReport = {
    ...{ siteId, org, listen: '', received: 0, dropped: 0, lastAt: null, format: null, problem: null },
  }
  let waiting: string[] = []
  let waitingBytes = 0
  let [isStopping, storing] = [false, Promise.resolve()]
  const receive = (datagram: Buffer): void => {
    const line = messageOf(datagram)
    report.lastAt = isoTime(clock.now())
    if (waitingBytes + line.length > waitingBytesMax) report.dropped++
    else {
      report.received++
      waitingBytes += line.length + 1
      waiting.push(line)
      if (waitingBytes >= batchBytes) flush()
    }
  }
  const store = batchStorer(services, rule, report, () => isStopping)
  let isRunning = false
  function flush(): void {
    if (isRunning || waiting.length === 0) return
    isRunning = true
    storing = (async () => {
      while (waiting.length > 0) {
        const text = `${waiting.join('\n')}\n`
        const bytes = waitingBytes
        waiting = []
        await store(text)
        waitingBytes -= bytes // counts until it is stored
      }
      isRunning = false
    })()
  }
  const socket = await openSocket(at, receive)
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

/** Stores a batch, and repeats it until it is stored or the server stops. */
function batchStorer(
  { accessReceiver, log, senderOf }: SyslogServices,
  rule: SyslogRule,
  report: SyslogReport,
  isStopping: () => boolean,
): (text: string) => Promise<void> {
  const stream = createStreamFormat()
  return async (text) => {
    const source = `syslog:${newToken()}`
    const format = formatOf(stream, report, text)
    const lines = { source, format, path: report.listen, heading: '', from: 0, to: text.length, text }
    for (;;) {
      try {
        const sender = await senderOf(rule)
        await accessReceiver.store(sender, { ...lines, cutTail: null, epoch: '' }, true)
        report.problem = null
        return
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error)
        if (report.problem === null) log.warn('syslog_lines_wait', { listen: report.listen, message })
        report.problem = message
        if (isStopping()) return
        await Bun.sleep(retryMs)
      }
    }
  }
}

/** Lines that arrive before a format is recognized are stored as bad ones. */
function formatOf(stream: StreamFormat, report: SyslogReport, text: string): string {
  const format = stream.read(text)
  report.format = stream.name()
  return 'name' in format ? format.name : 'combined'
}

interface Socket {
  address: string
  droppedByKernel(): number
  close(): void
}

async function openSocket(at: SyslogRule['at'], receive: (datagram: Buffer) => void): Promise<Socket> {
  if ('unix' in at)
    return { address: `unix:${at.unix}`, droppedByKernel: () => 0, ...receiveDatagrams(at.unix, receive) }
  const { host, port } = at
  try {
    const socket = await Bun.udpSocket({
      hostname: host,
      port,
      socket: { data: (_, data) => receive(data) },
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
