/** The store's interface for signatures of agents that were accepted, so that none counts twice (contract §17). */

export interface SignatureUse {
  hash: string // SHA-256 of the key and its nonce, or of the signed text; hex
  /** SHA-256 of the hash and of the request it came with, hex: a request that is sent again uses it only once. */
  owner: string
  expiresAtMs: number // from then on its times refuse it
}

export interface SignatureStore {
  /** Records uses, of all nodes. Returns for each whether the signature is new, or was used by the same owner. */
  use(command: { uses: SignatureUse[] }): Promise<boolean[]>
  /** Deletes a bounded number of expired rows. Returns how many. */
  prune(command: { now: number }): Promise<number>
}
