/** The verbs that work on the data: one function each, run by whoever holds the folder, server or command line. */
import { createAccount, listAccounts, makeResetLink } from './account.ts'
import { setLogLevel } from './log-level.ts'
import { createBackupNow } from './backup.ts'
import { confirmTheClock, showClock } from './clock.ts'
import { appendDemo, beginDemo, removeDemo, serverAddress } from './demo-work.ts'
import { erase } from './erase.ts'
import { beginTraces, exportMetrics, tracesPage } from './export-work.ts'
import { appendImport, beginImport } from './import-work.ts'
import * as identity from './identity.ts'
import { createKey, listKeys, revokeKeyById } from './key.ts'
import { createOrg, listOrgs } from './org.ts'
import { beginExport, exportPage } from './export-audit-work.ts'
import { tellState } from './server-state.ts'
import { setUp } from './setup.ts'
import type { StoreVerb } from '../../runtime/verb-context.ts'
import * as webhook from './webhook.ts'

export const storeVerbs: { readonly [verb: string]: StoreVerb } = {
  'org create': createOrg,
  'org list': listOrgs,
  'account create': createAccount,
  'account list': listAccounts,
  'account reset-password': makeResetLink,
  'key create': createKey,
  'key list': listKeys,
  'key revoke': revokeKeyById,
  'account invite': identity.invite,
  'account set-role': identity.setRole,
  'account remove': identity.removeMember,
  'account make-operator': identity.setOperator(true),
  'account drop-operator': identity.setOperator(false),
  'account reset-second-factor': identity.resetSecondFactor,
  'org rename': identity.renameOrg,
  'org delete': identity.deleteOrg,
  'org keep': identity.keepOrg,
  'org sign-in-rule': identity.setSignInRule,
  'site list': identity.listSites,
  'site change': identity.changeSite,
  'key rotate': identity.rotateKey,
  'key change': identity.changeKey,
  'webhook secret': webhook.showSecret,
  'webhook test': webhook.testDelivery,
  'webhook list': webhook.listDeliveries,
  'webhook show': webhook.showDelivery,
  'webhook replay': webhook.replay,
  'webhook add': webhook.addEndpoint,
  'webhook endpoints': webhook.endpoints,
  'webhook pause': webhook.pause,
  'webhook resume': webhook.resume,
  'webhook rotate-secret': webhook.rotateSecret,
  'webhook remove': webhook.removeEndpoint,
  'backup create': createBackupNow,
  erase,
  setup: setUp,
  'log-level': setLogLevel,
  clock: showClock,
  'clock confirm': confirmTheClock,
  // Parts of `export audit`, which asks for one page after the other.
  'export audit begin': beginExport,
  'export audit page': exportPage,
  // Parts of `export traces`, `export metrics` and `import`.
  'export traces begin': beginTraces,
  'export traces page': tracesPage,
  'export metrics': exportMetrics,
  'import begin': beginImport,
  'import append': appendImport,
  // Parts of `demo`, which makes its events on the side of the command line and hands them over in batches.
  'demo begin': beginDemo,
  'demo append': appendDemo,
  'demo remove': removeDemo,
  'server address': serverAddress,
  'server state': tellState,
}
