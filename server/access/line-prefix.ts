/**
 * Finds the line of a web server behind what syslog, journald and container runtimes write in front of it. A client has
 * no influence on the beginning of such a line.
 */

/** RFC 3164 has no year and no zone. syslog-ng, Cisco and journald add fractions, Cisco a year. */
const bsdTime = String.raw`[A-Z][a-z]{2} [ \d]\d (?:\d{4} )?\d\d:\d\d:\d\d(?:\.\d{1,9})?`
/** RFC 5424, rsyslog, Go's log/syslog and journald write ISO times. */
const isoTime = String.raw`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?`
/** `journalctl -o short-full`, short-unix and short-monotonic. */
const journalTime = String.raw`(?:[A-Z][a-z]{2} ${isoTime} [A-Z]{2,5}|\d{10}\.\d{6}|\[ *\d{1,10}\.\d{6}\])`
/** A host that ends with a colon would be a tag, and what follows it the line. */
const hostName = String.raw`(?:[^ ]{0,254}[^ :] )?`
/**
 * A tag ends with a colon and a space: a colon alone may be of a host with its port, or of an IPv6 address. With a
 * process it may have colons itself, as the names of Docker's images have.
 */
const tag = String.raw`(?:[^ \[\]]{1,255}\[\d{1,10}\]: ?|[\w./@-]{1,128}(?:: |:(?=\{)))`
const structuredData = String.raw`(?:-|(?:\[(?:[^\]\\]|\\.){0,2000}\]){1,20})`
const byteOrderMark = String.raw`(?:\u00ef\u00bb\u00bf)?`
/** Frames of RFC 6587 begin with their length, also where a relay kept it. */
const octetCount = String.raw`(?:\d{1,6} (?=<))?`
const priority = String.raw`(?:${octetCount}<\d{1,3}>)?`

const rfc5424 = String.raw`${priority}1 (?:[^ ]{1,255} ){5}${structuredData} ?${byteOrderMark}`
const syslog = String.raw`${priority}(?:${bsdTime}|${isoTime}|${journalTime}) ${hostName}${tag}${byteOrderMark}`
/** Python's `ident` stands alone between the priority and the text. */
const tagAlone = String.raw`${octetCount}<\d{1,3}>${tag}`
/** A sequence number, an origin, and an asterisk or dot for a clock that is not synchronized. */
const cisco = String.raw`${priority}(?:\d{1,10}: )?(?:[\w.-]{1,128}: )?[*.]?${bsdTime}(?: [A-Z]{2,5})?: `
const cri = String.raw`${isoTime} std(?:out|err) [FP](?::[\w:]{1,20})? `
const color = String.raw`(?:\u001b\[[\d;]{0,12}m)*`
const compose = String.raw`${color}[\w.-]{1,128} +\|${color} ${color}`
const kubectl = String.raw`\[pod/[\w./-]{1,512}\] `
/** `docker logs -t` and `kubectl logs --timestamps`. */
const timestamps = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}(?:Z|[+-]\d\d:\d\d) `
/** OpenLiteSpeed writes a quote before and behind its lines. */
const quote = String.raw`"(?=[^"])`

const prefixes = [rfc5424, syslog, cisco, tagAlone, cri, compose, kubectl, timestamps, quote]
const prefix = new RegExp(`(?:${prefixes.join('|')}) *(?:@cee: ?)?`, 'y')

/** The length of a prefix without structured data is less. */
const prefixCharsMax = 4_096

/** Where the line behind a known prefix starts; `start` without one. */
export function prefixEnd(text: string, start: number, end: number): number {
  const head = text.slice(start, Math.min(end, start + prefixCharsMax))
  prefix.lastIndex = 0
  return prefix.test(head) ? start + prefix.lastIndex : start
}

export interface SyslogMessage {
  line: string // each character a byte
  /** The host and the program of the header; '' for a message without one. */
  sender: string
}

/** A message without a tag, as of Python. Whether a host follows, only the format of the line can tell. */
const shortHeader =
  /^(?:\d{1,6} (?=<))?<\d{1,3}>(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d )?(?:\u00ef\u00bb\u00bf)?/

/** The line of a datagram. A line feed in it would make a second line, which anybody could then forge. */
export function readMessage(datagram: Buffer): SyslogMessage {
  let end = datagram.length
  while (end > 0 && isEndOfLine(datagram[end - 1]!)) end--
  const text = datagram.toString('latin1', 0, end)
  const start = prefixEnd(text, 0, text.length)
  const line = start > 0 ? text.slice(start) : text.replace(shortHeader, '')
  return { line: line.replaceAll(/[\r\n]/g, ' '), sender: start > 0 ? senderIn(text.slice(0, start)) : '' }
}

/** Python ends a message with NUL, others with a line feed. */
const isEndOfLine = (byte: number): boolean => byte === 0 || byte === 10 || byte === 13

const hostAndProgram = /^(?:\d{1,6} )?<\d{1,3}>1 [^ ]+ ([^ ]+) ([^ ]+) /
const untilTime =
  /^(?:\d{1,6} )?<\d{1,3}>(?:.*\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?(?: [A-Z]{2,5}(?=:))?:? )?/
const processNumber = /\[\d+\]/

/** Without what differs from message to message: priority, time and process. */
function senderIn(header: string): string {
  const [, host, program] = hostAndProgram.exec(header) ?? []
  if (host !== undefined) return `${host} ${program}`
  return header
    .replace(untilTime, '')
    .replace(processNumber, '')
    .replaceAll(/[: ]+$/g, '')
    .slice(0, senderCharsMax)
}

const senderCharsMax = 200
