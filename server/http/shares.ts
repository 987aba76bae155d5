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
  grow(this: Share, amount: number): boolean
  /** Returns all of it; idempotent. */
  release(this: Share): void
}

export interface Shares {
  acquire(owner: Owner, amount: number): Share | null
  fits(owner: Owner, amount: number): boolean
  used(): number
}

/** What the holders of an organization have. */
interface Used {
  all: number
  byHolder: Map<string, number>
}

export function makeShares(total: number): Shares {
  const byOrg = new Map<string, Used>()
  let usedTotal = 0
  let spare: Used | null = null // of the last organization that had nothing left: often the next one, too

  function fits({ orgId, holderId }: Owner, amount: number): boolean {
    const ofOrg = byOrg.get(orgId)
    const usedByOrg = ofOrg?.all ?? 0
    const ofHolder = ofOrg?.byHolder.get(holderId) ?? 0
    return usedByOrg + amount <= total - usedTotal && ofHolder + amount <= total / 2 - usedByOrg
  }

  function add({ orgId, holderId }: Owner, amount: number): void {
    if (amount === 0) return
    usedTotal += amount
    const ofOrg = byOrg.get(orgId) ?? spare ?? { all: 0, byHolder: new Map<string, number>() }
    if (ofOrg === spare) spare = null
    ofOrg.all += amount
    if (ofOrg.all === 0) {
      byOrg.delete(orgId)
      ofOrg.byHolder.clear()
      spare = ofOrg
      return
    }
    byOrg.set(orgId, ofOrg)
    const ofHolder = (ofOrg.byHolder.get(holderId) ?? 0) + amount
    if (ofHolder === 0) ofOrg.byHolder.delete(holderId)
    else ofOrg.byHolder.set(holderId, ofHolder)
  }

  const amounts: Amounts = { fits, add }
  return {
    fits,
    used: () => usedTotal,
    acquire(owner, amount) {
      if (!fits(owner, amount)) return null
      add(owner, amount)
      return { of: amounts, owner, amount, grow, release } as Held
    },
  }
}

interface Amounts {
  fits(owner: Owner, amount: number): boolean
  add(owner: Owner, amount: number): void
}

/** Its functions are those of all shares, because every request has one. */
interface Held extends Share {
  of: Amounts
  owner: Owner
  amount: number
}

function grow(this: Held, extraAmount: number): boolean {
  if (!this.of.fits(this.owner, extraAmount)) return false
  this.of.add(this.owner, extraAmount)
  this.amount += extraAmount
  return true
}

function release(this: Held): void {
  this.of.add(this.owner, -this.amount)
  this.amount = 0
}
