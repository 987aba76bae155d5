/**
 * Finds the line of a web server behind what syslog and container runtimes write in front of it. A client has no
 * influence on the beginning of such a line.
 */

/** RFC 3164 has no zone, RFC 5424 and rsyslog write ISO times. */
const bsdTime = String.raw`[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d`
const isoTime = String.raw`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?`
/** A tag ends with a colon and a space: a colon alone may be of a host with its port, or of an IPv6 address. */
const tag = String.raw`[\w./-]{1,64}(?:\[\d{1,10}\]: ?|: |:(?=\{))`
const structuredData = String.raw`(?:-|(?:\[(?:[^\]\\]|\\.){0,2000}\]){1,20})`
const byteOrderMark = String.raw`(?:\u00ef\u00bb\u00bf)?`

const rfc5424 = String.raw`(?:<\d{1,3}>)?1 (?:[^ ]{1,255} ){5}${structuredData} ?${byteOrderMark}`
const syslog = String.raw`(?:<\d{1,3}>)?(?:${bsdTime}|${isoTime}) (?:[^ ]{1,255} )?${tag}`
const cri = String.raw`${isoTime} std(?:out|err) [FP] `
const compose = String.raw`[\w.-]{1,128} +\| `

const prefix = new RegExp(`(?:${rfc5424}|${syslog}|${cri}|${compose}) *`, 'y')

/** The length of a prefix without structured data is less. */
const prefixCharsMax = 4_096

/** Where the line behind a known prefix starts; `start` without one. */
export function prefixEnd(text: string, start: number, end: number): number {
  const head = text.slice(start, Math.min(end, start + prefixCharsMax))
  prefix.lastIndex = 0
  return prefix.test(head) ? start + prefix.lastIndex : start
}
