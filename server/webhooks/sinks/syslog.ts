/** Sends events as syslog messages (RFC 5424), one per UDP datagram or octet-counted over TCP (RFC 6587). */
import { createSocket } from 'node:dgram'
import { connect, isIP } from 'node:net'
import { hostname } from 'node:os'
import { messageLines } from '../../../db/rules/batch-body.ts'
import { isoTime } from '../../clock.ts'
import { noteCall } from '../../system/outbound.ts'
import { RefusedUrl, type Sink } from './sink.ts'
import { firstReached, refuseForbidden, requireAddresses } from './addresses.ts'
import { networkError, type Peer } from './connection.ts'

interface SyslogTarget {
  transport: 'udp' | 'tcp'
  host: string
  port: number
}

const schemes: { [scheme: string]: Pick<SyslogTarget, 'transport' | 'port'> } = {
  'syslog:': { transport: 'udp', port: 514 },
  'syslog+udp:': { transport: 'udp', port: 514 },
  'syslog+tcp:': { transport: 'tcp', port: 601 },
}

export const syslog: Sink<SyslogTarget> = {
  schemes: Object.keys(schemes),
  parse(url) {
    const { transport, port: portDefault } = schemes[url.protocol]!
    if (url.pathname.replace('/', '') !== '' || url.search !== '')
      throw new RefusedUrl('a syslog URL has no path and no query')
    // Only http URLs get their host normalized (0x7f.1, full-width digits, percent escapes).
    const asHttp = `http://${url.hostname}/`
    if (url.hostname === '' || !URL.canParse(asHttp)) throw new RefusedUrl('it has no host')
    const port = url.port === '' ? portDefault : Number(url.port)
    if (port === 0) throw new RefusedUrl('its port is 0')
    return { transport, host: new URL(asHttp).hostname.replace(/^\[(.*)\]$/, '$1'), port }
  },
  check({ host }, text, { resolve }) {
    refuseForbidden(resolve, host)
    return text
  },
  async send({ transport, host, port }, { delivery }, { resolve, atMs, signal }) {
    refuseForbidden(resolve, host)
    const addresses = requireAddresses(host, await resolve(host))
    const lines = messageLines(delivery.body)
    await firstReached(addresses, (address) => {
      if (transport === 'udp')
        return sendDatagrams(
          { address, port },
          lines.map((line) => datagram(line, atMs, thisSource)),
        )
      const messages = lines.map((line) => syslogMessage(line, atMs, thisSource))
      return sendStream({ address, port }, octetCounted(messages), signal)
    })
    return null
  },
}

const facilityLocal0 = 16
const severity = { warning: 4, notice: 5, informational: 6 } as const
/** An IPv4 datagram holds at most 65,507 bytes. */
const datagramBytesMax = 65_000

interface SyslogSource {
  host: string
  processId: number
}

const thisSource: SyslogSource = { host: hostname(), processId: process.pid }

/** `<134>1 2026-06-23T12:00:00.000Z host sightglass 4711 authz.evaluated - {…}`, all ASCII. */
export function syslogMessage(line: string, nowMs: number, source: SyslogSource): string {
  const { type, outcome, occurredAt } = readFields(line)
  const level = type === 'alert.opened' ? 'warning' : outcome === 'blocked' ? 'notice' : 'informational'
  const header = [
    `<${facilityLocal0 * 8 + severity[level]}>1`,
    rfc5424Time(occurredAt) ?? isoTime(nowMs),
    word(source.host, 255),
    'sightglass',
    String(source.processId),
    word(type ?? '', 32),
    '-',
  ]
  return `${header.join(' ')} ${asciiJson(line)}`
}

/** An event too large for a datagram is replaced by its id and type, so that the receiver knows it happened. */
export function datagram(line: string, nowMs: number, source: SyslogSource): string {
  const whole = syslogMessage(line, nowMs, source)
  if (whole.length <= datagramBytesMax) return whole
  const { id, type, occurredAt } = readFields(line)
  return syslogMessage(JSON.stringify({ id, type, occurredAt, tooLargeForUdp: true }), nowMs, source)
}

/** Each message follows its length, so that nothing in it can look like the end of a message. */
export function octetCounted(messages: string[]): string {
  return messages.map((message) => `${message.length} ${message}`).join('')
}

interface Fields {
  id?: string
  type?: string
  outcome?: string
  occurredAt?: string
}

function readFields(line: string): Fields {
  const event = JSON.parse(line) as { [name in keyof Fields]: unknown }
  const names = ['id', 'type', 'outcome', 'occurredAt'] as const
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = event[name]
      return typeof value === 'string' ? [[name, value.slice(0, 200)]] : []
    }),
  )
}

/** Events may have up to nine fraction digits and any UTC offset; RFC 5424 allows six digits. */
function rfc5424Time(text: string | undefined): string | null {
  const ms = text === undefined ? Number.NaN : Date.parse(text)
  return Number.isNaN(ms) ? null : isoTime(ms)
}

function word(text: string, charsMax: number): string {
  return text.replace(/[^\x21-\x7e]/g, '').slice(0, charsMax) || '-'
}

/** Equal JSON in ASCII only: it needs no byte order mark, and its length in characters is its length in bytes. */
function asciiJson(text: string): string {
  return text.replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** Sends each message as one datagram. Nothing confirms that it arrives. */
function sendDatagrams(peer: Peer, messages: string[]): Promise<void> {
  noteCall({ what: 'syslog', host: peer.address, ...peer })
  const socket = createSocket(isIP(peer.address) === 6 ? 'udp6' : 'udp4')
  const pendingSends = messages.map(
    (message) =>
      new Promise<void>((resolve, reject) => {
        socket.once('error', reject)
        socket.send(message, peer.port, peer.address, (error) => (error ? reject(error) : resolve()))
      }),
  )
  return Promise.all(pendingSends).then(
    () => void socket.close(),
    (error: unknown) => {
      socket.close()
      throw error
    },
  )
}

/** Writes `bytes` over one connection; resolves when the receiver has read all of it and the connection has ended. */
function sendStream(peer: Peer, bytes: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    noteCall({ what: 'syslog', host: peer.address, ...peer })
    const socket = connect({ host: peer.address, port: peer.port })
    const stop = () => socket.destroy(signal.reason as Error)
    signal.addEventListener('abort', stop, { once: true })
    socket.once('connect', () => socket.end(bytes))
    socket.once('error', (error) => reject(networkError(error, peer)))
    socket.once('close', (failed) => {
      signal.removeEventListener('abort', stop)
      if (!failed) resolve()
    })
    socket.resume() // unread data from the receiver would keep the connection open
  })
}
