/**
 * Divides what is scarce (bytes of bodies, streams, exports) among organizations, and in each among its keys and
 * accounts. Nobody takes more than is left for the others: one organization alone gets half of the total, two a third
 * each; and in the same way each holder gets half of what its organization may have.
 */
import { AppError, retryAfter } from '../errors.ts'

export interface Owner {
  orgId: string // empty for somebody who is not known yet
  holderId: string // a key, an account, or the address of somebody who is not known yet
}

export interface Share {
  /** False, and nothing is taken, when there is no room. */
  grow(amount: number): boolean
  /** Gives all of it back; more than once is as good as once. */
  release(): void
}

export interface Shares {
  take(owner: Owner, amount: number): Share | null
  hasRoom(owner: Owner, amount: number): boolean
  taken(): number
}

export function makeShares(total: number): Shares {
  const byOrg = new Map<string, number>()
  const byHolder = new Map<string, number>()
  let all = 0

  const keyOf = ({ orgId, holderId }: Owner) => `${orgId}\n${holderId}`

  function hasRoom(owner: Owner, amount: number): boolean {
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
    hasRoom,
    taken: () => all,
    take(owner, amount) {
      if (!hasRoom(owner, amount)) return null
      add(owner, amount)
      let held = amount
      return {
        grow(more) {
          if (!hasRoom(owner, more)) return false
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

/** Throws 503 when the organization, or who acts for it, has as many as it may. */
export function takeExport(shares: Shares, orgId: string, actor: string): Share {
  const share = shares.take({ orgId, holderId: actor }, 1)
  if (share !== null) return share
  const message = 'As many exports are running as you may have at a time; try again when one has ended.'
  throw new AppError('overloaded', message, { headers: retryAfter() })
}
