/** The store's interface for organizations, sites, people, sign-ins and keys. */
import type { AuditEntry, AuditStore } from './audit.ts'
import type { ThrottleStore } from './throttle.ts'
export type * from './audit.ts'

// ---------------------------------------------------------------- organizations and their sites
export interface Org {
  id: string // org_…
  slug: string
  name: string
  createdAtMs: number
}

/** A requested deletion of an organization. Until `dueAtMs` nothing changes, and it can be cancelled. */
export interface OrgDeletion {
  orgId: string
  askedAtMs: number
  dueAtMs: number
}

/** What an organization requires of its members before they see its data. */
export interface SignInRule {
  secondFactorRequired: boolean
}

export interface OrgStore {
  /** `conflict` when the slug exists. With `ownerId` that account becomes its owner. */
  create(command: { org: Org; ownerId?: string; audit: AuditEntry }): Promise<void>
  list(): Promise<Org[]>
  find(idOrSlug: string): Promise<Org | null>
  rename(command: { orgId: string; name: string; audit: AuditEntry }): Promise<void>
  signInRule(orgId: string): Promise<SignInRule>
  changeSignInRule(command: { orgId: string; rule: SignInRule; audit: AuditEntry }): Promise<void>
  deletions(): Promise<OrgDeletion[]>
  /** `conflict` when a deletion is already requested. */
  requestDeletion(command: OrgDeletion & { audit: AuditEntry }): Promise<void>
  /** `conflict` without a request, or when it is due and removal has begun. */
  cancelDeletion(command: { orgId: string; now: number; audit: AuditEntry }): Promise<void>
  /**
   * Deletes a bounded part of the deliveries, events and counts of an organization whose deletion is due. Call until
   * `done`; `conflict` before the due time.
   */
  empty(command: { orgId: string; now: number }): Promise<{ events: number; done: boolean }>
  /**
   * Deletes an organization whose deletion is due, except its audit chain; `conflict` before. Its keys end at once on
   * this node and within 1 s on others. Writes wait for it, so it is emptied first. Accounts stay, also those without
   * another organization.
   */
  remove(command: { orgId: string; now: number; audit: AuditEntry }): Promise<void>
}

/** A site is created by its first event. People choose everything else about it. */
export interface Site {
  siteId: string
  name: string | null
  hidden: boolean // not offered in the dashboard's site menu; its events stay
  restricted: boolean // only ingest keys that name it may write to it
  hosts: string[] // that signed requests may name: shop.example, with its port unless that is the default
  seen: boolean // it has an event; false when it was only named in advance
}

export interface SiteStore {
  list(orgId: string): Promise<Site[]>
  /** Stores the settings of a site, also before its first event. */
  change(command: { orgId: string; site: Omit<Site, 'seen'>; audit: AuditEntry }): Promise<void>
  /**
   * Sites that only keys naming them may write to. Fast enough for every ingest request. A change by another node
   * counts within 1 s.
   */
  restricted(orgId: string): ReadonlySet<string> | Promise<ReadonlySet<string>>
}

/** A named filter of Logs for every member of the organization. */
export interface SavedView {
  id: string
  orgId: string
  name: string // unique in an organization
  search: string // query string of the address, with its '?'; '' for every event
  createdBy: string // account id
  createdAtMs: number
}

/** `conflict` when another view has the name, `not_found` for an unknown id. */
export interface ViewStore {
  /** By name. */
  list(orgId: string): Promise<SavedView[]>
  /** Also `conflict` when the organization has `viewsMax` views. */
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

/** When a member last opened Overview, and which changes it reported. */
export interface OverviewVisit {
  sinceMs: number // when the report began
  atMs: number
  hidden: string[] // what the report before showed
  shown: string[]
}

export type OverviewLook = Pick<OverviewVisit, 'sinceMs' | 'atMs'> & { orgId: string }

export interface AccountStore {
  /** Creates the first owner, atomically, only while no owner exists and the setup link, if passed, is valid. */
  createFirstOwner(command: {
    account: Account
    orgId: string
    linkHash: string | null
    now: number
    signIn?: SignIn // created in the same transaction and named in the audit entry
    network?: string // network of this sign-in, stored for the account
    audit: AuditEntry
  }): Promise<'created' | 'owner_exists' | 'link_invalid'>
  /** `conflict` when the email address exists. With `link` the link is created in the same transaction. */
  create(command: {
    account: Account
    orgId: string
    role: Role
    link?: OneTimeLink
    audit: AuditEntry
  }): Promise<void>
  /** Also ends the account's sign-ins, except the named one. */
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
   * Creates a one-time link and ends older ones of the same purpose and account. Only its SHA-256 is stored. The setup
   * link has no audit entry, because it belongs to no organization; using it has one.
   */
  createLink(command: { link: OneTimeLink; audit: AuditEntry | null }): Promise<void>
  /**
   * The one setup link of nodes that share a database: prolongs the live one and returns its encrypted token, or stores
   * this one.
   */
  shareSetupLink(command: { link: OneTimeLink; sealedToken: string; now: number }): Promise<string>
  /** A link that has not expired, whatever its purpose. */
  findLink(query: { hash: string; now: number }): Promise<OneTimeLink | null>
  /** Consumes a password link and sets the password in one transaction. The account keeps this network only. */
  resetPassword(command: {
    linkHash: string
    passwordHash: string
    now: number
    network?: string
    address?: string // for the audit entry
    auditId: string
  }): Promise<'done' | 'link_invalid'>
  /**
   * Changes a member's role and ends their sign-ins there; `last_owner` when no owner would be left. `endsShareLinks`
   * also ends the share links that they created, and their number is in the audit entry.
   */
  setRole(command: {
    orgId: string
    accountId: string
    role: Role
    endsShareLinks: boolean
    audit: AuditEntry
  }): Promise<'done' | 'last_owner'>
  /** Removes a member, and ends their sign-ins and share links there. The account stays. */
  removeMember(command: {
    orgId: string
    accountId: string
    audit: AuditEntry
  }): Promise<'done' | 'last_owner'>
  overviewVisit(query: { orgId: string; accountId: string }): Promise<OverviewVisit | null>
  recentVisits(query: { afterMs: number; limit: number }): Promise<OverviewLook[]>
  /** Merges a visit with what other devices of the member noted: the newer report counts. Not audited. */
  noteOverviewVisit(command: {
    orgId: string
    accountId: string
    visit: OverviewVisit
  }): Promise<OverviewVisit>
  /** The appliance always has at least one operator. */
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
  /** Ends an older invitation of the same address and organization; `conflict` for a current member. */
  create(command: { invitation: Invitation; audit: AuditEntry }): Promise<void>
  list(orgId: string): Promise<Invitation[]>
  find(hash: string): Promise<Invitation | null>
  revoke(command: { orgId: string; id: string; audit: AuditEntry }): Promise<void>
  /** Consumes the link and makes its account a member. `account` is created when the address has none. */
  accept(command: {
    hash: string
    now: number
    account: Account
    signIn?: SignIn // created in the same transaction and named in the audit entry
    network?: string
    auditId: string
  }): Promise<'done' | 'link_invalid'>
  /** Deletes invitations that expired before `now`; returns how many. */
  prune(command: { now: number }): Promise<number>
}

/** The second factor of an account: an encrypted TOTP seed, and the number of recovery codes left. */
export interface SecondFactor {
  accountId: string
  encryptedSeed: string
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

/** A dashboard sign-in, not an agent's session in events. */
export interface SignIn {
  id: string // ses_…, listed
  tokenHash: string // hex SHA-256 of the cookie
  accountId: string
  orgId: string // the organization the dashboard shows
  createdAtMs: number
  lastSeenAtMs: number
  expiresAtMs: number // absolute expiry
  address: string
  userAgent: string
  byProvider: boolean // through an identity provider, whose second factor replaces ours
}

export interface SignInView {
  signIn: SignIn
  account: Account
  role: Role // in signIn.orgId
  org: Org
  /** The organization requires a second factor, and neither the account nor the sign-in has one. */
  lacksSecondFactor: boolean
}

/** What a sign-in consumes in the same transaction, so that no code works for two sign-ins. */
export type Proof = { step: number } | { recoveryHash: string }

export interface SignInStore {
  /**
   * `used` when the proof was used before, `stale` when the checked password is no longer the account's. Neither writes
   * anything. `external` and `network` are stored for the next sign-in.
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
  /** The sign-in with its account and role, or null. The caller checks idle time and expiry. */
  find(tokenHash: string): Promise<SignInView | null>
  touch(command: { tokenHash: string; now: number }): Promise<void>
  end(command: { tokenHash: string; audit: AuditEntry }): Promise<void>
  list(accountId: string): Promise<SignIn[]>
  /** `not_found` when the account has no such sign-in. */
  endById(command: { accountId: string; id: string; audit: AuditEntry }): Promise<void>
  /** Ends all sign-ins but one. Returns how many; none writes no audit entry. */
  endOthers(command: { accountId: string; keepTokenHash: string; audit: AuditEntry }): Promise<number>
  /** Switches to another organization under a new token; `not_found` when the account is not a member of it. */
  switchOrg(command: {
    tokenHash: string
    newTokenHash: string
    orgId: string
    audit: AuditEntry
  }): Promise<void>
  /** The account of an identity provider's subject. */
  findExternal(identity: { issuer: string; subject: string }): Promise<Account | null>
  /**
   * Deletes sign-ins that expired before `now` and networks last used before `networksBeforeMs`. Returns how many
   * sign-ins.
   */
  prune(command: { now: number; idleMs: number; networksBeforeMs?: number }): Promise<number>
}

// ---------------------------------------------------------------- keys

export type KeyKind = 'ingest' | 'secret' | 'publishable'

export interface ApiKey {
  id: string // key_…
  orgId: string
  kind: KeyKind
  label: string
  prefix: string // first 16 characters, listed
  hash: string // hex SHA-256 of the whole key
  scopes: string[] // for secret keys; [] = all scopes of the kind
  siteIds: string[] // for ingest keys; [] = every site
  behindProxy: boolean // accepts browser headers that a relaying proxy leaves in requests
  createdAtMs: number
  expiresAtMs: number | null
  revokedAtMs: number | null
  lastUsedAtMs: number | null // rounded to the minute
  lastUsedAddress: string | null
  exposedAtMs: number | null // when a browser's headers first came with it
}

/** The settings of a key that can change. */
export type KeySettings = Pick<ApiKey, 'label' | 'scopes' | 'siteIds' | 'behindProxy' | 'expiresAtMs'>

export interface KeyStore {
  create(command: { key: ApiKey; audit: AuditEntry }): Promise<void>
  list(query: { orgId: string; kind?: KeyKind | undefined }): Promise<ApiKey[]>
  /**
   * The key with this hash, whatever its state. Fast enough for every request: engines answer from memory. A change by
   * this store counts at once, one by another node within 1 s: a store that has not heard from its database for that
   * long asks it first, and rejects with `unavailable` when it does not answer.
   */
  findByHash(hash: string): ApiKey | null | Promise<ApiKey | null>
  /** `not_found` for an unknown key of the organization. Revoking again returns false and writes no audit entry. */
  revoke(command: { orgId: string; keyId: string; now: number; audit: AuditEntry }): Promise<boolean>
  /** `conflict` when the key is revoked. */
  change(command: { orgId: string; keyId: string; settings: KeySettings; audit: AuditEntry }): Promise<void>
  /** Stores the successor. The old key ends at `oldEndsAtMs` unless it ends sooner; `conflict` when revoked. */
  rotate(command: {
    orgId: string
    keyId: string
    successor: ApiKey
    oldEndsAtMs: number
    audit: AuditEntry
  }): Promise<void>
  /** Records last use. Callers batch to the minute. */
  touch(uses: { keyId: string; atMs: number; address: string }[]): Promise<void>
  /** Marks a key as used by a browser, once. Returns whether this call was the first. */
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
  throttle: ThrottleStore
  keys: KeyStore
  audit: AuditStore
}
