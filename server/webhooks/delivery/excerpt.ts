/** Turns the start of a receiver's answer, which may be anything, into text that is safe to keep and to show. */
import { cutBytes } from '../../text/text.ts'
import { excerptBytesMax } from './send.ts'

const decoder = new TextDecoder('utf-8')

/** Compressed bodies are not inflated: their text would be the receiver's choice of size. */
export function excerptText(bytes: Uint8Array, encoding: string | null): string {
  if (bytes.length === 0) return ''
  const coding = encoding?.trim().toLowerCase() ?? 'identity'
  if (coding !== '' && coding !== 'identity') return `(${bytes.length} bytes in content-encoding, not shown)`
  // NUL and other control characters stand for a receiver that answers binary.
  const text = decoder.decode(bytes).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g, '\ufffd')
  return cutBytes(text, excerptBytesMax) // a byte that is no text became three
}
