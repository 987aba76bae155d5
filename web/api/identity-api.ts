/** The calls of Settings for people, organizations, sites, the own account, keys and the audit log. */
import type { AuditEntryView } from '../../server/audit/export.ts'
import type { OrgView } from '../../server/identity/organizations/routes.ts'
import type { OwnSignInView } from '../../server/identity/people/routes.ts'
import type { MemberView } from '../../server/identity/people/members.ts'
import type { InvitationView } from '../../server/identity/people/routes.ts'
import { get, json, post, type Key, type KeyWanted, type Role, type Session } from './api.ts'

export type Member = MemberView
export type Invitation = InvitationView
export type OwnOrg = OrgView & { role: Role }
export type OwnSignIn = OwnSignInView

export interface SignInRule {
  secondFactorRequired: boolean
  lacking: { id: string; email: string }[]
}

export interface Site {
  siteId: string
  name: string | null
  hidden: boolean
  restricted: boolean
  hosts: string[]
  seen: boolean
}

export interface OwnAccount {
  email: string
  secondFactor: { since: string; recoveryLeft: number } | null
  signIns: OwnSignIn[]
}

export type AuditEntry = AuditEntryView & {
  actorName: string | null // an email address, the label of a key, or a component of the appliance
  targetName: string | null
  address: string | null // of the client; null for the command line and for jobs
  position: number
}
export type Metadata = AuditEntry['metadata']

const finish = async (call: Promise<Response>): Promise<void> => void (await call)
const id = encodeURIComponent

/** Newest first. `nextBefore` continues with older entries; null at the end. */
export interface AuditPage {
  entries: AuditEntry[]
  nextBefore: number | null
}

export const identityApi = {
  people: (signal: AbortSignal) =>
    get<{ members: Member[]; invitations: Invitation[] }>('/api/people', signal),
  changeRole: (memberId: string, role: Role) => finish(post(`/api/people/${id(memberId)}/role`, { role })),
  removeMember: (memberId: string) => finish(post(`/api/people/${id(memberId)}/remove`, {})),
  invite: async (invitation: { email: string; role: Role }) =>
    json<{ invitation: Invitation; link: string }>(await post('/api/invitations', invitation)),
  revokeInvitation: (invitationId: string) => finish(post(`/api/invitations/${id(invitationId)}/revoke`, {})),
  lookAtInvitation: async (token: string) =>
    json<{ email: string; role: Role; orgName: string; hasAccount: boolean }>(
      await post('/api/invitations/look', { token }, true),
    ),
  acceptInvitation: async (accepted: { token: string; password: string }) =>
    json<Session | { secondFactor: true; token: string }>(
      await post('/api/invitations/accept', accepted, true),
    ),

  orgs: async (signal: AbortSignal) => (await get<{ orgs: OwnOrg[] }>('/api/orgs', signal)).orgs,
  createOrg: async (org: { name: string; slug?: string }) =>
    json<{ org: OwnOrg }>(await post('/api/orgs', org)),
  switchOrg: async (orgId: string) => json<Session>(await post('/api/session/org', { orgId })),
  renameOrg: (name: string) => finish(post('/api/org/rename', { name })),
  deleteOrg: (confirm: string) => finish(post('/api/org/delete', { confirm })),
  signInRule: (signal: AbortSignal) => get<SignInRule>('/api/org/sign-in-rule', signal),
  changeSignInRule: async (secondFactorRequired: boolean) =>
    json<SignInRule>(await post('/api/org/sign-in-rule', { secondFactorRequired })),
  keepOrg: () => finish(post('/api/org/keep', {})),

  sites: async (signal: AbortSignal) => (await get<{ sites: Site[] }>('/api/sites', signal)).sites,
  changeSite: (
    site: { siteId: string } & Partial<Pick<Site, 'hidden' | 'restricted' | 'hosts'>> & { name?: string },
  ) => finish(post('/api/sites', site)),

  account: (signal: AbortSignal) => get<OwnAccount>('/api/account', signal),
  changePassword: (change: { current: string; password: string }) =>
    finish(post('/api/account/password', change)),
  endSignIn: (signInId: string) => finish(post(`/api/account/sign-ins/${id(signInId)}/end`, {})),
  endOtherSignIns: () => finish(post('/api/account/sign-ins/end-others', {})),
  beginSecondFactor: async () =>
    json<{ seed: string; uri: string; token: string }>(await post('/api/account/second-factor/begin', {})),
  setSecondFactor: async (set: { token: string; code: string; password: string }) =>
    (await json<{ recoveryCodes: string[] }>(await post('/api/account/second-factor', set))).recoveryCodes,
  newRecoveryCodes: async (password: string) =>
    (
      await json<{ recoveryCodes: string[] }>(
        await post('/api/account/second-factor/recovery-codes', { password }),
      )
    ).recoveryCodes,
  removeSecondFactor: (password: string) => finish(post('/api/account/second-factor/remove', { password })),

  changeKey: (key: string, change: Omit<Partial<KeyWanted>, 'kind'>) =>
    finish(post(`/api/keys/${id(key)}/change`, change)),
  rotateKey: async (key: string, overlapHours: number) =>
    json<{ key: Key; secret: string }>(await post(`/api/keys/${id(key)}/rotate`, { overlapHours })),

  audit: (params: URLSearchParams, signal: AbortSignal) => get<AuditPage>(`/api/audit?${params}`, signal),
  exportAudit: async (filter: { [field: string]: unknown }) =>
    (await post('/api/audit/export', filter)).blob(),
}
