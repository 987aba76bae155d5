/** The identity part of the store contract: organizations, sites, people, sign-ins and keys. */
import type { AuditEntry } from './audit.ts'
import type { AuditStore } from './audit.ts'
export type * from './audit.ts'

// ---------------------------------------------------------------- organizations and their sites

export interface Org {
  id: string // org_…
  slug: string
  name: string
  createdAtMs: number
}

/** An organization that somebody asked to delete; until `dueAtMs` everything goes on, and it can be taken back. */
export interface OrgDeletion {
  orgId: string
  askedAtMs: number
  dueAtMs: number
}

/** What an organization asks of its members before they see its data. */
export interface SignInRule {
  secondFactorRequired: boolean
}

export interface OrgStore {
  /** `conflict` when the slug is taken. With `ownerId` that account becomes its owner. */
  create(command: { org: Org; ownerId?: string; audit: AuditEntry }): Promise<void>
  list(): Promise<Org[]>
  find(idOrSlug: string): Promise<Org | null>
  rename(command: { orgId: string; name: string; audit: AuditEntry }): Promise<void>
  signInRule(orgId: string): Promise<SignInRule>
  changeSignInRule(command: { orgId: string; rule: SignInRule; audit: AuditEntry }): Promise<void>
  deletions(): Promise<OrgDeletion[]>
  /** `conflict` when it is asked for already. */
  requestDeletion(command: OrgDeletion & { audit: AuditEntry }): Promise<void>
  /** `conflict` when nobody asked for it, or when the time has come and it is being removed. */
  cancelDeletion(command: { orgId: string; now: number; audit: AuditEntry }): Promise<void>
  /**
   * One step of bounded length towards `remove`: takes deliveries, events and counts out of an organization whose time
   * has come, to be called until `done`; `conflict` before. `small` is for a full disk.
   */
  empty(command: { orgId: string; now: number; small?: boolean }): Promise<{ events: number; done: boolean }>
  /**
   * Removes an organization whose time has come, with everything but its audit chain; `conflict` before. Writes wait
   * for it, so it is emptied first. Accounts stay, also those without another organization.
   */
  remove(command: { orgId: string; now: number; audit: AuditEntry }): Promise<void>
}

/** A site comes into being with its first event; everything else about it is chosen by people. */
export interface Site {
  siteId: string
  name: string | null
  hidden: boolean // left out of the dashboard's choices; its events stay
  restricted: boolean // only ingest keys that name it may write it
  seen: boolean // an event has arrived, or it was only named ahead
}

export interface SiteStore {
  list(orgId: string): Promise<Site[]>
  /** Keeps what people chose for a site, also before its first event. */
  change(command: { orgId: string; site: Omit<Site, 'seen'>; audit: AuditEntry }): Promise<void>
  /** The sites that only keys naming them may write. Fast enough for every ingest request. */
  restricted(orgId: string): Promise<ReadonlySet<string>>
}

/** Filters of Logs under a name, for every member of the organization. */
export interface SavedView {
  id: string
  orgId: string
  name: string // one in an organization
  search: string // the query of the address, with its '?'; '' for every event
  createdBy: string // account
  createdAtMs: number
}

/** A name that another view has rejects as `conflict`, an id that is not there as `not_found`. */
export interface ViewStore {
  /** By name. */
  list(orgId: string): Promise<SavedView[]>
  /** Rejects as `conflict` too when the organization has `viewsMax` already. */
  create(command: { view: SavedView; viewsMax: number; audit: AuditEntry }): Promise<void>
  change(command: {
    orgId: string
    id: string
    name: string
    search: string
    audit: AuditEntry
  }): Promise<void>
  remove(command: { orgId: string; id: string; audit: AuditEntry }): Promise<void>
}

// ---------------------------------------------------------------- people

export type Role = 'owner' | 'admin' | 'analyst' | 'viewer'

export interface Account {
  id: string // usr_…
  email: string // lower case
  passwordHash: string // argon2id, PHC string
  operator: boolean
  createdAtMs: number
}

export interface Membership {
  orgId: string
  accountId: string
  role: Role
}

export interface AccountStore {
  /** Creates the first owner, atomically, only while no owner exists and (when given) the set-up link is live. */
  createFirstOwner(command: {
    account: Account
    orgId: string
    linkHash: string | null
    now: number
    signIn?: SignIn // begun at once; the audit row tells of it too
    network?: string // where that is, remembered for the account
    audit: AuditEntry
  }): Promise<'created' | 'owner_exists' | 'link_invalid'>
  /** `conflict` when the e-mail address is taken. With `link` it is made in the same transaction. */
  create(command: {
    account: Account
    orgId: string
    role: Role
    link?: OneTimeLink
    audit: AuditEntry
  }): Promise<void>
  /** Ends the account's sign-ins too, except the one named to be kept. */
  setPassword(command: {
    accountId: string
    passwordHash: string
    keepTokenHash?: string
    audit: AuditEntry
  }): Promise<void>
  findByEmail(email: string): Promise<Account | null>
  find(accountId: string): Promise<(Account & { memberships: Membership[] }) | null>
  list(): Promise<(Account & { memberships: Membership[] })[]>
  ownerExists(): Promise<boolean>
  /**
   * Makes a one-time link; the older ones of the same purpose and account end. Only its SHA-256 is kept. The set-up
   * link alone has no audit entry: it belongs to nobody, and its use is told.
   */
  createLink(command: { link: OneTimeLink; audit: AuditEntry | null }): Promise<void>
  /** A link that has not expired, whatever it is for. */
  findLink(query: { hash: string; now: number }): Promise<OneTimeLink | null>
  /** Uses up a password link and sets the password in one transaction; the account keeps only this network. */
  resetPassword(command: {
    linkHash: string
    passwordHash: string
    now: number
    network?: string
    address?: string // for the audit entry
    auditId: string
  }): Promise<'done' | 'link_invalid'>
  /** Gives a member another role and ends their sign-ins there; `last_owner` when nobody would own it any more. */
  setRole(command: {
    orgId: string
    accountId: string
    role: Role
    audit: AuditEntry
  }): Promise<'done' | 'last_owner'>
  /** Takes a member out and ends their sign-ins there; the account itself stays. */
  removeMember(command: {
    orgId: string
    accountId: string
    audit: AuditEntry
  }): Promise<'done' | 'last_owner'>
  /** The appliance keeps at least one operator. */
  setOperator(command: {
    accountId: string
    operator: boolean
    audit: AuditEntry
  }): Promise<'done' | 'last_operator'>
}

export interface OneTimeLink {
  hash: string // hex SHA-256 of the token
  purpose: 'setup' | 'password'
  accountId: string | null
  expiresAtMs: number
}

export interface Invitation {
  id: string // inv_…
  hash: string // hex SHA-256 of the token
  orgId: string
  email: string
  role: Role
  invitedBy: string // as an audit actor
  createdAtMs: number
  expiresAtMs: number
}

export interface InvitationStore {
  /** An older one for the same address and organization ends; `conflict` when they are a member already. */
  create(command: { invitation: Invitation; audit: AuditEntry }): Promise<void>
  list(orgId: string): Promise<Invitation[]>
  find(hash: string): Promise<Invitation | null>
  revoke(command: { orgId: string; id: string; audit: AuditEntry }): Promise<void>
  /** Uses the link up and makes its account a member; `account` is made when no account has the address yet. */
  accept(command: {
    hash: string
    now: number
    account: Account
    signIn?: SignIn // begun at once; the audit entry tells of it too
    network?: string
    auditId: string
  }): Promise<'done' | 'link_invalid'>
  /** Forgets what expired before `now`; returns how many. */
  prune(command: { now: number }): Promise<number>
}

/** The second factor of an account: a TOTP seed, sealed, and how many recovery codes are left. */
export interface SecondFactor {
  accountId: string
  sealedSeed: string
  lastStep: number // the newest 30-second step used, so that no code works twice
  sinceMs: number
  recoveryLeft: number
}

export interface SecondFactorStore {
  find(accountId: string): Promise<SecondFactor | null>
  /** Replaces the factor and its recovery codes. */
  set(command: {
    factor: Omit<SecondFactor, 'recoveryLeft'>
    recoveryHashes: string[]
    audit: AuditEntry
  }): Promise<void>
  setRecovery(command: { accountId: string; recoveryHashes: string[]; audit: AuditEntry }): Promise<void>
  remove(command: { accountId: string; audit: AuditEntry }): Promise<void>
}

// ---------------------------------------------------------------- sign-ins

/** A dashboard sign-in (not to be confused with an agent's session in events). */
export interface SignIn {
  id: string // ses_…, shown in lists
  tokenHash: string // hex SHA-256 of the cookie
  accountId: string
  orgId: string // the organization the dashboard shows
  createdAtMs: number
  lastSeenAtMs: number
  expiresAtMs: number // absolute end
  address: string
  userAgent: string
  byProvider: boolean // through an identity provider, whose second factor stands for ours
}

export interface SignInView {
  signIn: SignIn
  account: Account
  role: Role // in signIn.orgId
  org: Org
  /** The organization requires a second factor, and neither the account nor the sign-in has one. */
  lacksSecondFactor: boolean
}

/** What a sign-in uses up in the same transaction, so that no code works for two of them. */
export type Proof = { step: number } | { recoveryHash: string }

export interface SignInStore {
  /**
   * `used` when the proof had been used before, `stale` when the account's password is no longer the one that was
   * checked: nothing is written then. `external` and `network` are remembered for next time.
   */
  create(command: {
    signIn: SignIn
    passwordHash?: string
    proof?: Proof
    external?: { issuer: string; subject: string }
    network?: string
    audit: AuditEntry
  }): Promise<'done' | 'used' | 'stale'>
  /** Whether the account signed in from this network since `sinceMs`. */
  knowsNetwork(query: { accountId: string; network: string; sinceMs: number }): Promise<boolean>
  /** The live sign-in with its account and role, or null. The caller judges idle and absolute ends. */
  find(tokenHash: string): Promise<SignInView | null>
  touch(command: { tokenHash: string; now: number }): Promise<void>
  end(command: { tokenHash: string; audit: AuditEntry }): Promise<void>
  list(accountId: string): Promise<SignIn[]>
  /** `not_found` when the account has no such sign-in. */
  endById(command: { accountId: string; id: string; audit: AuditEntry }): Promise<void>
  /** Ends all but one; returns how many, and writes no audit entry for none. */
  endOthers(command: { accountId: string; keepTokenHash: string; audit: AuditEntry }): Promise<number>
  /** Shows another organization, under a new token; `not_found` when the account is not a member of it. */
  switchOrg(command: {
    tokenHash: string
    newTokenHash: string
    orgId: string
    audit: AuditEntry
  }): Promise<void>
  /** The account that an identity provider's subject stands for. */
  findExternal(identity: { issuer: string; subject: string }): Promise<Account | null>
  /** Deletes what ended before `now`, and networks last used before `networksBeforeMs`; returns how many sign-ins. */
  prune(command: { now: number; idleMs: number; networksBeforeMs?: number }): Promise<number>
}

// ---------------------------------------------------------------- keys

export type KeyKind = 'ingest' | 'secret' | 'publishable'

export interface ApiKey {
  id: string // key_…
  orgId: string
  kind: KeyKind
  label: string
  prefix: string // first 16 characters, for lists
  hash: string // hex SHA-256 of the whole key
  scopes: string[] // secret keys; [] = all of the kind
  siteIds: string[] // ingest keys; [] = every site
  behindProxy: boolean // accept browser headers a relaying proxy leaves on
  createdAtMs: number
  expiresAtMs: number | null
  revokedAtMs: number | null
  lastUsedAtMs: number | null // minute resolution
  lastUsedAddress: string | null
  exposedAtMs: number | null // first seen with a browser's headers
}

/** What may change about a key that is in use. */
export type KeyTerms = Pick<ApiKey, 'label' | 'scopes' | 'siteIds' | 'behindProxy' | 'expiresAtMs'>

export interface KeyStore {
  create(command: { key: ApiKey; audit: AuditEntry }): Promise<void>
  list(query: { orgId: string; kind?: KeyKind | undefined }): Promise<ApiKey[]>
  /** The key with this hash, whatever its state. Fast enough for every request: engines answer from memory. */
  findByHash(hash: string): Promise<ApiKey | null>
  /** not_found when the organization has no such key; revoking twice is done once (returns false, writes no audit). */
  revoke(command: { orgId: string; keyId: string; now: number; audit: AuditEntry }): Promise<boolean>
  /** `conflict` when the key is revoked. */
  change(command: { orgId: string; keyId: string; terms: KeyTerms; audit: AuditEntry }): Promise<void>
  /** Keeps the successor and has the old key end at `oldEndsAtMs`, unless it ends sooner; `conflict` when revoked. */
  rotate(command: {
    orgId: string
    keyId: string
    successor: ApiKey
    oldEndsAtMs: number
    audit: AuditEntry
  }): Promise<void>
  /** Notes last use; callers batch to minute resolution. */
  touch(uses: { keyId: string; atMs: number; address: string }[]): Promise<void>
  /** Marks a key seen with a browser's headers, once. Returns whether this call was the first. */
  markExposed(command: { orgId: string; keyId: string; now: number; audit: AuditEntry }): Promise<boolean>
}

export interface IdentityStore {
  orgs: OrgStore
  sites: SiteStore
  views: ViewStore
  accounts: AccountStore
  invitations: InvitationStore
  secondFactors: SecondFactorStore
  signIns: SignInStore
  keys: KeyStore
  audit: AuditStore
}
