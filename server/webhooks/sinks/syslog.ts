/** Syslog messages of RFC 5424 around the lines of a message, and the framing of RFC 6587 for streams. */
import { hostname } from 'node:os'
import { isoTime } from '../../clock.ts'

const facilityLocal0 = 16
const severity = { warning: 4, notice: 5, informational: 6 } as const
/** IPv4 carries datagrams up to 65,507 bytes. */
const datagramBytesMax = 65_000

export interface SyslogSource {
  host: string
  processId: number
}

export const thisSource: SyslogSource = { host: hostname(), processId: process.pid }

/** `<134>1 2026-06-23T12:00:00.000Z host sightglass 4711 authz.evaluated - {…}`, all ASCII. */
export function syslogMessage(line: string, nowMs: number, source: SyslogSource): string {
  const { type, outcome, occurredAt } = read(line)
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

/** For UDP: an event too large for a datagram is named instead, so that the receiver knows that it was. */
export function datagram(line: string, nowMs: number, source: SyslogSource): string {
  const whole = syslogMessage(line, nowMs, source)
  if (whole.length <= datagramBytesMax) return whole
  const { id, type, occurredAt } = read(line)
  return syslogMessage(JSON.stringify({ id, type, occurredAt, tooLargeForUdp: true }), nowMs, source)
}

/** For TCP: each message behind its length, so that nothing in it can look like the end of one. */
export function octetCounted(messages: string[]): string {
  return messages.map((message) => `${message.length} ${message}`).join('')
}

interface Known {
  id?: string
  type?: string
  outcome?: string
  occurredAt?: string
}

function read(line: string): Known {
  const { id, type, outcome, occurredAt } = JSON.parse(line) as { [member in keyof Known]: unknown }
  const text = (value: unknown) => (typeof value === 'string' ? { value: value.slice(0, 200) } : null)
  const known = { id: text(id), type: text(type), outcome: text(outcome), occurredAt: text(occurredAt) }
  return Object.fromEntries(
    Object.entries(known).flatMap(([name, found]) => (found === null ? [] : [[name, found.value]])),
  )
}

/** Events may carry up to nine fraction digits and any offset; RFC 5424 takes six. */
function rfc5424Time(text: string | undefined): string | null {
  const ms = text === undefined ? Number.NaN : Date.parse(text)
  return Number.isNaN(ms) ? null : isoTime(ms)
}

function word(text: string, charsMax: number): string {
  return text.replace(/[^\x21-\x7e]/g, '').slice(0, charsMax) || '-'
}

/** Equal JSON without a character beyond ASCII: no byte order mark is needed, and a length is a length. */
function asciiJson(text: string): string {
  return text.replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
