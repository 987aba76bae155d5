/** Assembles the identity part of the store from its verbs; what ingest asks at every request comes from memory. */
import type { ApiKey, IdentityStore } from '../../contract/store.ts'
import { keyStore } from './key-store.ts'
import { siteStore } from './site-store.ts'
import type { Threads } from '../threads/threads.ts'

type Verbs = Pick<Threads, 'read' | 'write'>
type OfPeople = Pick<IdentityStore, 'accounts' | 'invitations' | 'secondFactors' | 'signIns'>

/** What was read at the opening, before anybody could change it. */
export interface Loaded {
  keys: ApiKey[]
  restricted: { orgId: string; siteId: string }[]
}

export async function loadIdentity({ read }: Pick<Verbs, 'read'>): Promise<Loaded> {
  return { keys: await read('keys.all', null), restricted: await read('sites.restricted', null) }
}

export function identityStore(verbs: Verbs, loaded: Loaded): IdentityStore {
  const { read, write } = verbs
  const keys = keyStore(verbs, loaded.keys)
  return {
    ...storeOfPeople(verbs),
    orgs: {
      create: (command) => write('orgs.create', command),
      list: () => read('orgs.list', null),
      find: (idOrSlug) => read('orgs.find', idOrSlug),
      rename: (command) => write('orgs.rename', command),
      signInRule: (orgId) => read('orgs.signInRule', orgId),
      changeSignInRule: (command) => write('orgs.changeSignInRule', command),
      deletions: () => read('orgs.deletions', null),
      askDeletion: (command) => write('orgs.askDeletion', command),
      keep: (command) => write('orgs.keep', command),
      empty: (command) => write('orgs.empty', command),
      async remove(command) {
        await write('orgs.remove', command)
        keys.dropOrg(command.orgId)
      },
    },
    sites: siteStore(verbs, loaded.restricted),
    views: {
      list: (orgId) => read('views.list', orgId),
      create: (command) => write('views.create', command),
      change: (command) => write('views.change', command),
      remove: (command) => write('views.remove', command),
    },
    keys,
    audit: {
      append: (entry) => write('audit.append', entry),
      list: (query) => read('audit.list', query),
      heads: () => read('audit.heads', null),
      rows: (query) => read('audit.rows', query),
      trims: () => read('audit.trims', null),
      trimPoint: (query) => read('audit.trimPoint', query),
      trim: (command) => write('audit.trim', command),
      sweep: (orgId) => write('audit.sweep', orgId),
      verify: (anchors) => read('audit.verify', anchors ?? []),
    },
  }
}

function storeOfPeople({ read, write }: Verbs): OfPeople {
  return {
    accounts: {
      createFirstOwner: (command) => write('accounts.createFirstOwner', command),
      create: (command) => write('accounts.create', command),
      setPassword: (command) => write('accounts.setPassword', command),
      findByEmail: (email) => read('accounts.findByEmail', email),
      find: (accountId) => read('accounts.find', accountId),
      list: () => read('accounts.list', null),
      ownerExists: () => read('accounts.ownerExists', null),
      createLink: (command) => write('accounts.createLink', command),
      findLink: (query) => read('accounts.findLink', query),
      resetPassword: (command) => write('accounts.resetPassword', command),
      setRole: (command) => write('accounts.setRole', command),
      removeMember: (command) => write('accounts.removeMember', command),
      setOperator: (command) => write('accounts.setOperator', command),
    },
    invitations: {
      create: (command) => write('invitations.create', command),
      list: (orgId) => read('invitations.list', orgId),
      find: (hash) => read('invitations.find', hash),
      revoke: (command) => write('invitations.revoke', command),
      accept: (command) => write('invitations.accept', command),
      prune: (now) => write('invitations.prune', { now }),
    },
    secondFactors: {
      find: (accountId) => read('secondFactors.find', accountId),
      set: (command) => write('secondFactors.set', command),
      setRecovery: (command) => write('secondFactors.setRecovery', command),
      remove: (command) => write('secondFactors.remove', command),
    },
    signIns: {
      create: (command) => write('signIns.create', command),
      find: (tokenHash) => read('signIns.find', tokenHash),
      touch: (tokenHash, now) => write('signIns.touch', { tokenHash, now }),
      end: (command) => write('signIns.end', command),
      list: (accountId) => read('signIns.list', accountId),
      endById: (command) => write('signIns.endById', command),
      endOthers: (command) => write('signIns.endOthers', command),
      switchOrg: (command) => write('signIns.switchOrg', command),
      findExternal: (identity) => read('signIns.findExternal', identity),
      knowsNetwork: (query) => read('signIns.knowsNetwork', query),
      prune: (now, idleMs, networksBeforeMs) =>
        write('signIns.prune', {
          now,
          idleMs,
          ...(networksBeforeMs === undefined ? {} : { networksBeforeMs }),
        }),
    },
  }
}
