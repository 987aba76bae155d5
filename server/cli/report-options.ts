/** The options of scheduled reports: `serve --report`, and the mail server that sends them. */
import { AppError, UsageError } from '../errors.ts'
import { readEmail } from '../identity/people/members.ts'
import { mailServer, type MailServer } from '../reports/mail.ts'
import { reportRules, type ReportRule } from '../reports/schedule.ts'
import type { Options } from './option.ts'

export const reportOptions = {
  report: {
    read: reportRules,
    value: 'EVERY=FOLDER|EMAIL|webhook:ENDPOINT',
    default: '',
    help: 'signed report of each day, week or month, written to a folder or sent by email or to a webhook endpoint (its id or label); in the file as [[report]] with every, zone, sites, org, folder, email and webhook',
    adds: true,
  },
  'smtp-url': {
    read: mailServer,
    value: 'URL',
    default: null,
    help: 'mail server that sends reports: smtp://USER:PASSWORD@HOST:587, or smtps:// for TLS from the start',
    secret: true,
  },
  'smtp-from': {
    read: senderAddress,
    value: 'EMAIL',
    default: null,
    help: 'address of the sender of reports',
  },
} satisfies Options

function senderAddress(text: string): string {
  try {
    return readEmail(text)
  } catch (error) {
    if (error instanceof AppError)
      throw new UsageError(`"${text}" is not an address such as reports@example.com`)
    throw error
  }
}

interface Given {
  report: ReportRule[]
  'smtp-url': Omit<MailServer, 'from'> | null
  'smtp-from': string | null
}

/** Rejects reports by email without a mail server. */
export function reportsConfig({ report: rules, 'smtp-url': server, 'smtp-from': from }: Given): {
  rules: ReportRule[]
  mailServer: MailServer | null
} {
  if ((server === null) !== (from === null))
    throw new UsageError('--smtp-url and --smtp-from must be set together')
  if (server === null && rules.some(({ to }) => to.some((receiver) => 'email' in receiver)))
    throw new UsageError('a report by email needs --smtp-url and --smtp-from')
  return { rules, mailServer: server === null || from === null ? null : { ...server, from } }
}
