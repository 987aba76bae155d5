/** Sends a report by SMTP: its totals as text, and the signed file as an attachment. */
import { isIP } from 'node:net'
import { UsageError } from '../errors.ts'
import { countText } from '../text/html.ts'
import { noteCall } from '../system/outbound.ts'
import { notComparable } from '../counts/headlines.ts'
import type { ReportDraft } from './report.ts'

export interface MailServer {
  host: string
  port: number
  secure: boolean // TLS from the first byte; otherwise by STARTTLS
  login: { user: string; pass: string } | null
  from: string
}

const ports = { 'smtp:': 587, 'smtps:': 465 }

/** `smtp://user:password@host:587` or `smtps://…`; `from` is the address of the sender. */
export function mailServer(text: string): Omit<MailServer, 'from'> {
  const url = URL.canParse(text) ? new URL(text) : null
  const port = url !== null && Object.hasOwn(ports, url.protocol) ? ports[url.protocol as 'smtp:'] : null
  if (url === null || port === null || url.hostname === '')
    throw new UsageError('a mail server is smtp://USER:PASSWORD@HOST:587 or smtps://USER:PASSWORD@HOST:465')
  if (!['', '/'].includes(url.pathname) || url.search !== '' || url.hash !== '' || url.port === '0')
    throw new UsageError('the address of a mail server ends after host and port')
  if ((url.username === '') !== (url.password === ''))
    throw new UsageError('a mail server needs both a user name and a password, or neither')
  const user = decoded(url.username)
  const pass = decoded(url.password)
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? port : Number(url.port),
    secure: url.protocol === 'smtps:',
    login: user === '' ? null : { user, pass },
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new UsageError('a % in the user name or password of a mail server is written %25')
  }
}

export interface ReportMail {
  to: string
  messageId: string
  title: string // such as: Weekly report
  report: Pick<ReportDraft, 'facts' | 'fileName' | 'totals'>
  range: string
  html: string
}

const waitMs = 15_000

/** Resolves when the server has accepted the message. */
export async function sendMail(server: MailServer, mail: ReportMail): Promise<void> {
  const { host, port, secure, login, from } = server
  const { facts, fileName } = mail.report
  // Loaded on demand, because most servers send no mail.
  const { createTransport } = await import('nodemailer')
  const isLocal = host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
  const transport = createTransport({
    host,
    port,
    secure,
    ...(login !== null && { auth: login }),
    // A password never travels in clear text. Mail servers of this machine often have no certificate that fits.
    ...(!secure && isLocal ? { ignoreTLS: true } : { requireTLS: login !== null }),
    connectionTimeout: waitMs,
    greetingTimeout: waitMs,
    socketTimeout: waitMs,
    dnsTimeout: waitMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  noteCall({ what: 'mail server', host, address: isIP(host) > 0 ? host : null, port })
  await transport.sendMail({
    from,
    to: { name: '', address: mail.to },
    messageId: mail.messageId,
    subject: `${mail.title} of ${visible(facts.org)}: ${mail.range}`,
    headers: { 'Auto-Submitted': 'auto-generated' }, // no answers from absent people
    text: mailText(mail),
    attachments: [{ filename: fileName, content: mail.html, contentType: 'text/html; charset=utf-8' }],
  })
}

function mailText({ title, range, report: { facts, fileName, totals } }: ReportMail): string {
  const width = Math.max(...totals.map(({ name }) => name.length))
  const lines = totals.map(({ name, count, before: previousCount }) => {
    const earlier = previousCount === null ? notComparable : `${countText(previousCount)} before`
    return `${name.padEnd(width)}  ${countText(count)} (${earlier})`
  })
  return `${title} of ${visible(facts.org)}: ${range}

${lines.join('\n')}

"Before" is the previous period of the same length. The attached file has charts and tables. It opens in a browser
and requests nothing.

Verify that nobody changed it:

  sightglass verify ${fileName}

or open /docs/verify-report on your Sightglass server and choose the file.
`
}

/** Without characters that break lines or hide text. */
const visible = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]+/gu, ' ')
