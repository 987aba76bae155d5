/** A real SMTP server for tests: it accepts or refuses messages and remembers them. */
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'

export interface SmtpMessage {
  to: string[]
  from: string
  login: string | null
  secure: boolean
  text: string // headers and body as received
}

export interface SmtpReceiver extends AsyncDisposable {
  port: number
  messages: SmtpMessage[]
  /** Refuses messages while this is set. */
  refusal: string | null
  /** Waits so long between receiving a message and confirming it. */
  confirmMs: number
}

export const smtpLogin = { user: 'reports', password: 'p@ss:w/rd' }

export async function startSmtp(options: SMTPServerOptions = {}): Promise<SmtpReceiver> {
  const messages: SmtpMessage[] = []
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    hideSTARTTLS: true,
    logger: false,
    closeTimeout: 100,
    ...options,
    onAuth({ username, password }, _session, callback) {
      const isRight = username === smtpLogin.user && password === smtpLogin.password
      if (isRight) callback(null, { user: username })
      else callback(new Error('Wrong user name or password'))
    },
    onData(stream, session, callback) {
      const parts: Buffer[] = []
      stream.on('data', (part: Buffer) => parts.push(part))
      stream.on('end', () => {
        if (receiver.refusal !== null) return callback(new Error(receiver.refusal))
        const { mailFrom, rcptTo } = session.envelope
        messages.push({
          to: rcptTo.map(({ address }) => address),
          from: mailFrom === false ? '' : mailFrom.address,
          login: typeof session.user === 'string' ? session.user : null,
          secure: session.secure,
          text: Buffer.concat(parts).toString(),
        })
        setTimeout(() => callback(), receiver.confirmMs)
      })
    },
  })
  server.on('error', () => undefined) // a client that was killed
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const receiver: SmtpReceiver = {
    port: (server.server.address() as { port: number }).port,
    messages,
    refusal: null,
    confirmMs: 0,
    [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())),
  }
  return receiver
}

export const headerOf = ({ text }: SmtpMessage, name: string): string | undefined =>
  new RegExp(`^${name}: (.*(?:\\r\\n[ \\t].*)*)`, 'im')
    .exec(text.split('\r\n\r\n')[0]!)?.[1]
    ?.replaceAll('\r\n', '')

/** The bytes of its only attachment. */
export function attachmentOf({ text }: SmtpMessage): Uint8Array {
  const part = text
    .split(/\r\n--[^\r\n]+\r\n/)
    .find((candidate) => /^content-disposition: attachment/im.test(candidate))
  return Buffer.from(part!.slice(part!.indexOf('\r\n\r\n')).split('\r\n--')[0]!, 'base64')
}
