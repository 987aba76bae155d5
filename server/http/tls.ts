/** The certificate and key of our listeners: read, checked together, and taken up anew when the files change. */
import { X509Certificate, createPrivateKey } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import type { Log } from '../log.ts'

export interface TlsFiles {
  certFile: string
  keyFile: string
}

export interface TlsPair {
  cert: string
  key: string
}

/** Throws with one sentence when a file cannot be read, is no PEM, or the key is not the certificate's. */
export function readTlsPair({ certFile, keyFile }: TlsFiles): TlsPair {
  const pair = { cert: readPem(certFile), key: readPem(keyFile) }
  let certificate: X509Certificate
  try {
    certificate = new X509Certificate(pair.cert)
  } catch {
    throw new Error(`${certFile} contains no PEM certificate`)
  }
  let fits: boolean
  try {
    fits = certificate.checkPrivateKey(createPrivateKey(pair.key))
  } catch {
    throw new Error(`${keyFile} contains no unencrypted PEM private key`)
  }
  if (!fits) throw new Error(`the key in ${keyFile} does not match the certificate in ${certFile}`)
  return pair
}

function readPem(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable'
    throw new Error(`${path} cannot be read (${code})`)
  }
}

/** Keeps the listeners' certificate current: looks at its files and hands on a renewed pair that holds together. */
interface Certificate {
  /** What the listeners begin with; null without TLS. */
  pair(): TlsPair | null
  /** Looks every 5 s; `show` gets every renewed pair. */
  start(show: (pair: TlsPair) => void): void
  /** Reads the files now. */
  reload(): void
  stop(): void
}

const lookEveryMs = 5_000

/** Throws when the first pair is not usable. A later one that is not leaves the old one in place, with a log line. */
export function watchCertificate(files: TlsFiles | null, log: Log): Certificate {
  if (files === null) return { pair: () => null, start() {}, reload() {}, stop() {} }
  let seen = stamp(files)
  let current = readTlsPair(files)
  let timer: Timer | null = null
  let shown: (pair: TlsPair) => void = () => undefined

  function look(always: boolean): void {
    if (files === null) return
    const now = stamp(files)
    if (now === seen && !always) return
    seen = now // a broken pair is told once, not at every look
    try {
      const next = readTlsPair(files)
      if (next.cert === current.cert && next.key === current.key) return
      shown(next)
      current = next
      log.info('certificate_renewed', { file: files.certFile })
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      log.error('certificate_not_renewed', { message })
    }
  }

  return {
    pair: () => current,
    start(show) {
      shown = show
      timer = setInterval(() => look(false), lookEveryMs)
      timer.unref()
    },
    reload: () => look(true),
    stop() {
      if (timer !== null) clearInterval(timer)
    },
  }
}

/** Changes with every replacement of a file, also by a link that now points elsewhere. */
function stamp({ certFile, keyFile }: TlsFiles): string {
  const of = (path: string) => {
    const stat = statSync(path, { throwIfNoEntry: false })
    return stat === undefined ? 'none' : `${stat.dev}:${stat.ino}:${stat.mtimeMs}:${stat.size}`
  }
  return `${of(certFile)} ${of(keyFile)}`
}
