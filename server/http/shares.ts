/**
 * Divides scarce resources (bytes in flight, streams, exports) among organizations, and within each among its keys and
 * accounts. Nobody gets more than what remains free: a single organization gets at most half of the total, two get a
 * third each. Within an organization, a single key or account gets at most half of its share.
 */
export interface Owner {
  orgId: string // '' before authentication
  holderId: string // key, account, or the client's address before authentication
}

export interface Share {
  /** False when the amount does not fit; nothing changes then. */
  grow(amount: number): boolean
  /** Returns all of it; idempotent. */
  release(): void
}

export interface Shares {
  acquire(owner: Owner, amount: number): Share | null
  fits(owner: Owner, amount: number): boolean
  used(): number
}

export function makeShares(total: number): Shares {
  const byOrg = new Map<string, number>()
  const byHolder = new Map<string, number>()
  let all = 0

  const keyOf = ({ orgId, holderId }: Owner) => `${orgId}\n${holderId}`

  function fits(owner: Owner, amount: number): boolean {
    const ofOrg = byOrg.get(owner.orgId) ?? 0
    const ofHolder = byHolder.get(keyOf(owner)) ?? 0
    return ofOrg + amount <= total - all && ofHolder + amount <= total / 2 - ofOrg
  }

  function add(owner: Owner, amount: number): void {
    all += amount
    addTo(byOrg, owner.orgId, amount)
    addTo(byHolder, keyOf(owner), amount)
  }

  return {
    fits,
    used: () => all,
    acquire(owner, amount) {
      if (!fits(owner, amount)) return null
      add(owner, amount)
      let held = amount
      return {
        grow(more) {
          if (!fits(owner, more)) return false
          add(owner, more)
          held += more
          return true
        },
        release() {
          add(owner, -held)
          held = 0
        },
      }
    },
  }
}

function addTo(sums: Map<string, number>, key: string, amount: number): void {
  const sum = (sums.get(key) ?? 0) + amount
  if (sum === 0) sums.delete(key)
  else sums.set(key, sum)
}
