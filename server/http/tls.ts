/** The certificate and key of our listeners: read, checked together, and taken up anew when the files change. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'

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
    throw new Error(`${certFile} holds no certificate in PEM form`)
  }
  let fits: boolean
  try {
    fits = certificate.checkPrivateKey(createPrivateKey(pair.key))
  } catch {
    throw new Error(`${keyFile} holds no private key in PEM form without a passphrase`)
  }
  if (!fits) throw new Error(`the key in ${keyFile} does not belong to the certificate in ${certFile}`)
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
