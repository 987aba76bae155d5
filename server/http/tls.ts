/** The certificate and key of the listeners: loaded, validated, and reloaded when the files change. */
import { X509Certificate, createPrivateKey } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { firstBytes, openRegularFile, readTextFile, unreadableReason } from '../../db/rules/regular-files.ts'
import type { Log } from '../log.ts'
import { withinTime } from '../system/slow-files.ts'

export interface TlsFiles {
  certFile: string
  keyFile: string
}

export interface TlsPair {
  cert: string
  key: string
}

/** Throws when a file cannot be read, is not PEM, or the key does not match the certificate. */
function readTlsPair(files: TlsFiles): TlsPair {
  return requirePair(files, { cert: readPem(files.certFile), key: readPem(files.keyFile) })
}

function readPem(path: string): string {
  try {
    return readTextFile(path)
  } catch (error) {
    throw new Error(`${path} cannot be read (${unreadableReason(error)})`, { cause: error })
  }
}

/** The same of a running server, which must not wait for a file system that hangs. */
async function readTlsPairLater(files: TlsFiles): Promise<TlsPair> {
  return requirePair(files, {
    cert: await readPemLater(files.certFile),
    key: await readPemLater(files.keyFile),
  })
}

const pemBytesMax = 2 * 1024 * 1024

async function readPemLater(path: string): Promise<string> {
  try {
    return await withinTime({ path }, async () => {
      const file = await openRegularFile(path, { follows: true })
      try {
        return Buffer.from(await firstBytes(file, pemBytesMax)).toString()
      } finally {
        await file.close()
      }
    })
  } catch (error) {
    throw new Error(`${path} cannot be read (${unreadableReason(error)})`, { cause: error })
  }
}

function requirePair({ certFile, keyFile }: TlsFiles, pair: TlsPair): TlsPair {
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
  let current = readTlsPair(files)
  let lastStamp: string | null = null // read again once, because it may have changed since
  let isChecking = false
  let timer: Timer | null = null
  let applied: (pair: TlsPair) => void = () => undefined

  async function check(always: boolean): Promise<void> {
    if (files === null) return
    const now = await stampOf(files)
    if (now === lastStamp && !always) return
    lastStamp = now // an invalid pair is logged once, not at every check
    try {
      const next = await readTlsPairLater(files)
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
      timer = setInterval(() => {
        if (isChecking) return
        isChecking = true
        void check(false).finally(() => (isChecking = false))
      }, checkEveryMs)
      timer.unref()
    },
    reload: () => void check(true),
    stop() {
      if (timer !== null) clearInterval(timer)
    },
  }
}

/** Changes whenever a file is replaced, also through a symbolic link. */
async function stampOf({ certFile, keyFile }: TlsFiles): Promise<string> {
  const readStamp = async (path: string) => {
    const stats = await withinTime({ path }, () => stat(path)).catch(() => null)
    return stats === null ? 'none' : `${stats.dev}:${stats.ino}:${stats.mtimeMs}:${stats.size}`
  }
  return `${await readStamp(certFile)} ${await readStamp(keyFile)}`
}
