/** The 53-bit fingerprint of an event id within its organization: what dedupe keeps instead of the id. */

/**
 * Seeded with a secret of the store, so that nobody outside can make ids that clash. A clash costs one look at the disk
 * and nothing else: every hit is confirmed against the id itself. `bits` is smaller only in tests that want clashes.
 */
export function fingerprints(seed: bigint, bits = 53): (org: number, id: string) => number {
  const seeds: bigint[] = []
  const drop = BigInt(64 - bits)
  return (org, id) => {
    const orgSeed = (seeds[org] ??= Bun.hash.wyhash(`${org}`, seed) as bigint)
    return Number((Bun.hash.wyhash(id, orgSeed) as bigint) >> drop)
  }
}
