/** What stands in place of an erased event's id: enough to know a resend of it, not enough to know the id. */

/*
 * `#fingerprint hash`: the fingerprint finds the place again after a restart, and the hash, an HMAC-SHA256 under a
 * secret of the store, decides. No other id looks like this, because ids stand as JSON texts and begin with a quote.
 */
const hashBytes = 16

export type EraseMark = (org: number, id: string) => string

export function eraseMarks(key: Uint8Array, fingerprint: (org: number, id: string) => number): EraseMark {
  return (org, id) => {
    const hash = new Bun.CryptoHasher('sha256', key).update(`${org} ${id}`).digest().subarray(0, hashBytes)
    return `#${fingerprint(org, id)} ${hash.toString('base64url')}`
  }
}

/** The fingerprint of an id, also of an erased one; null of a removed one. */
export function fingerprintOf(text: string, fingerprint: (id: string) => number): number | null {
  if (text.startsWith('#')) return Number(text.slice(1, text.indexOf(' ')))
  return text === removedId ? null : fingerprint(text)
}

/** Stands for the id of an event that was removed and may come again. */
export const removedId = '""'
