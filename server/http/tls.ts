/** The certificate and key of the listeners: loaded, validated, and reloaded when the files change. */
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

/** Throws when a file cannot be read, is not PEM, or the key does not match the certificate. */
function readTlsPair({ certFile, keyFile }: TlsFiles): TlsPair {
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

/** Watches the certificate files and passes on a renewed pair. */
interface Certificate {
  /** The current pair; null without TLS. */
  pair(): TlsPair | null
  /** Checks every 5 s; calls `use` with every renewed pair. */
  start(use: (pair: TlsPair) => void): void
  /** Reloads the files now. */
  reload(): void
  stop(): void
}

const checkEveryMs = 5_000

/** Throws when the first pair is invalid. A later invalid pair is logged, and the old one stays in use. */
export function watchCertificate(files: TlsFiles | null, log: Log): Certificate {
  if (files === null) return { pair: () => null, start() {}, reload() {}, stop() {} }
  let seen = stamp(files)
  let current = readTlsPair(files)
  let timer: Timer | null = null
  let applied: (pair: TlsPair) => void = () => undefined

  function check(always: boolean): void {
    if (files === null) return
    const now = stamp(files)
    if (now === seen && !always) return
    seen = now // an invalid pair is logged once, not at every check
    try {
      const next = readTlsPair(files)
      if (next.cert === current.cert && next.key === current.key) return
      applied(next)
      current = next
      log.info('certificate_renewed', { file: files.certFile })
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      log.error('certificate_not_renewed', { message })
    }
  }

  return {
    pair: () => current,
    start(use) {
      applied = use
      timer = setInterval(() => check(false), checkEveryMs)
      timer.unref()
    },
    reload: () => check(true),
    stop() {
      if (timer !== null) clearInterval(timer)
    },
  }
}

/** Changes whenever a file is replaced, also through a symbolic link. */
function stamp({ certFile, keyFile }: TlsFiles): string {
  const of = (path: string) => {
    const stat = statSync(path, { throwIfNoEntry: false })
    return stat === undefined ? 'none' : `${stat.dev}:${stat.ino}:${stat.mtimeMs}:${stat.size}`
  }
  return `${of(certFile)} ${of(keyFile)}`
}
