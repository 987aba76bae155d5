/** The identity verbs of the writer and the readers, by name. */
import type { AuditAnchor, AuditEntry, AuditQuery } from '../../contract/store.ts'
import {
  createAccount,
  createFirstOwner,
  findAccount,
  findAccountByEmail,
  listAccounts,
  ownerExists,
  setPassword,
} from './accounts.ts'
import { appendAudit, auditHeads } from '../audit/append.ts'
import { auditRows, listAudit } from '../audit/list.ts'
import { auditTrims, sweepTrimmed, trimAudit, trimPoint } from '../audit/trim.ts'
import { verifyAudit } from '../audit/verify.ts'
import type { ReadContext, WriteContext } from '../threads/contexts.ts'
import {
  acceptInvitation,
  createInvitation,
  findInvitation,
  listInvitations,
  pruneInvitations,
  revokeInvitation,
} from './invitations.ts'
import { allKeys, changeKey, createKey, listKeys, markKeyExposed } from './keys.ts'
import { revokeKey, rotateKey, touchKeys } from './keys.ts'
import { createLink, findLink, resetPassword } from './invitations.ts'
import { removeMember, setOperator, setRole } from './accounts.ts'
import { emptyOrg, removeOrg } from './orgs.ts'
import { requestOrgDeletion, bootstrapOrg, createOrg, findOrg, cancelOrgDeletion } from './orgs.ts'
import { changeSignInRule, listOrgDeletions, listOrgs, renameOrg, signInRule } from './orgs.ts'
import { findSecondFactor, removeSecondFactor, setRecovery, setSecondFactor } from './second-factors.ts'
import { createSignIn, endOtherSignIns, endSignIn, endSignInById, findExternal } from './sign-ins.ts'
import { findSignIn, knowsNetwork, listSignIns, pruneSignIns } from './sign-ins.ts'
import { switchSignInOrg, touchSignIn } from './sign-ins.ts'
import { changeSite, listSites, restrictedSites } from './sites.ts'
import { changeView, createView, listViews, removeView } from './views.ts'

export const identityWriteVerbs = {
  'orgs.create': createOrg,
  'orgs.bootstrap': bootstrapOrg,
  'orgs.rename': renameOrg,
  'orgs.changeSignInRule': changeSignInRule,
  'orgs.requestDeletion': requestOrgDeletion,
  'orgs.cancelDeletion': cancelOrgDeletion,
  'orgs.empty': emptyOrg,
  'orgs.remove': removeOrg,
  'sites.change': changeSite,
  'views.create': createView,
  'views.change': changeView,
  'views.remove': removeView,
  'accounts.createFirstOwner': createFirstOwner,
  'accounts.create': createAccount,
  'accounts.setPassword': setPassword,
  'accounts.createLink': createLink,
  'accounts.resetPassword': resetPassword,
  'accounts.setRole': setRole,
  'accounts.removeMember': removeMember,
  'accounts.setOperator': setOperator,
  'invitations.create': createInvitation,
  'invitations.revoke': revokeInvitation,
  'invitations.accept': acceptInvitation,
  'invitations.prune': pruneInvitations,
  'secondFactors.set': setSecondFactor,
  'secondFactors.setRecovery': setRecovery,
  'secondFactors.remove': removeSecondFactor,
  'signIns.create': createSignIn,
  'signIns.touch': touchSignIn,
  'signIns.end': endSignIn,
  'signIns.endById': endSignInById,
  'signIns.endOthers': endOtherSignIns,
  'signIns.switchOrg': switchSignInOrg,
  'signIns.prune': pruneSignIns,
  'keys.create': createKey,
  'keys.revoke': revokeKey,
  'keys.change': changeKey,
  'keys.rotate': rotateKey,
  'keys.markExposed': markKeyExposed,
  'keys.touch': touchKeys,
  'audit.append': ({ db }: WriteContext, entry: AuditEntry) => appendAudit(db, entry),
  'audit.trim': trimAudit,
  'audit.sweep': sweepTrimmed,
} satisfies { [verb: string]: (context: WriteContext, command: never) => unknown }

export const identityReadVerbs = {
  'orgs.list': listOrgs,
  'orgs.find': findOrg,
  'orgs.signInRule': signInRule,
  'orgs.deletions': listOrgDeletions,
  'sites.list': listSites,
  'views.list': listViews,
  'sites.restricted': restrictedSites,
  'accounts.find': findAccount,
  'accounts.findByEmail': findAccountByEmail,
  'accounts.list': listAccounts,
  'accounts.ownerExists': ownerExists,
  'accounts.findLink': findLink,
  'invitations.list': listInvitations,
  'invitations.find': findInvitation,
  'secondFactors.find': findSecondFactor,
  'signIns.find': findSignIn,
  'signIns.knowsNetwork': knowsNetwork,
  'signIns.list': listSignIns,
  'signIns.findExternal': findExternal,
  'keys.list': listKeys,
  'keys.all': allKeys,
  'audit.list': ({ db }: ReadContext, query: AuditQuery) => listAudit(db, query),
  'audit.heads': ({ db }: ReadContext) => auditHeads(db),
  'audit.trims': ({ db }: ReadContext) => auditTrims(db),
  'audit.trimPoint': trimPoint,
  'audit.rows': ({ db }: ReadContext, query: { orgId: string; afterSeq: number; limit: number }) =>
    auditRows(db, query),
  'audit.verify': ({ db, folder }: ReadContext, anchors: AuditAnchor[]) => verifyAudit(db, folder, anchors),
} satisfies { [verb: string]: (context: ReadContext, query: never) => unknown }
