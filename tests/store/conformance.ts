/** The suite that every engine passes: `testStore(name, open)` in the engine's own test file. */
import { afterAll, beforeAll, describe, test } from 'bun:test'
import type { Store } from '../../db/contract/store.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'
import { keyCases, signInCases } from './access-cases.ts'
import { accessLogCases, accessLogNodeCases } from './access-log-cases.ts'
import { appendCases, guardRailCases, removeCases, watchCases } from './event-cases.ts'
import { countCases, ingestCountCases, registryCases, sessionCases } from './gateway-cases.ts'
import { accountCases, firstOwnerCases, orgCases, passwordLinkCases } from './identity-cases.ts'
import { auditSearchCases, keyInUseCases, orgEndCases, siteCases, viewCases } from './settings-cases.ts'
import { makeAudit, makeOrg } from './make.ts'
import { orgEmptyingCases } from './org-emptying-cases.ts'
import { filterCases, walkCases } from './page-cases.ts'
import { provenanceCases } from './provenance-cases.ts'
import { robotsCases } from './robots-cases.ts'
import { shareLinkCases } from './share-link-cases.ts'
import { invitationCases, memberCases, proofCases, visitCases } from './people-cases.ts'
import { auditCases, restCases, trimCases } from './record-cases.ts'
import { histogramCases, newValuesCases, topCases } from './column-cases.ts'
import { classVendorCases } from './class-vendor-cases.ts'
import { distinctCases, durationCases } from './sketch-cases.ts'
import { exploreCases } from './explore-cases.ts'
import { filteredCountsCases } from './filtered-counts-cases.ts'
import { claimCases, deliveryCases } from './webhook-delivery-cases.ts'
import { endpointCases, webhookAuditCases } from './webhook-endpoint-cases.ts'
import { ruleCases } from './alert-cases.ts'
import { seriesCases } from './series-cases.ts'
import { nodeCases } from './node-cases.ts'
import { sharedRecordCases } from './shared-record-cases.ts'
import { throttleCases, throttleNodeCases } from './throttle-cases.ts'
import type { Cases, OpenFolder, OpenNodes } from './subject.ts'

const groups: { [name: string]: Cases } = {
  organizations: orgCases,
  accounts: accountCases,
  'the first owner': firstOwnerCases,
  'password links': passwordLinkCases,
  'sign-ins': signInCases,
  'attempts to sign in': throttleCases,
  keys: keyCases,
  'the end of organizations': orgEndCases,
  'emptying organizations': orgEmptyingCases,
  sites: siteCases,
  'saved views': viewCases,
  'share links': shareLinkCases,
  members: memberCases,
  'visits of Overview': visitCases,
  invitations: invitationCases,
  'proofs and sign-ins': proofCases,
  'keys in use': keyInUseCases,
  'finding audit entries': auditSearchCases,
  audit: auditCases,
  'trims and settings of retention': trimCases,
  'appending events': appendCases,
  'watching events': watchCases,
  'removing events': removeCases,
  'guard rails': guardRailCases,
  'filtering events': filterCases,
  'walking events': walkCases,
  'claiming deliveries': claimCases,
  deliveries: deliveryCases,
  'webhook endpoints': endpointCases,
  'webhook rules': ruleCases,
  'audit of webhooks': webhookAuditCases,
  'counting and searching events': countCases,
  sessions: sessionCases,
  'classes and vendors': classVendorCases,
  'counts under any filter': filteredCountsCases,
  explore: exploreCases,
  'measures over time': seriesCases,
  histograms: histogramCases,
  'the newest values': topCases,
  'new values': newValuesCases,
  durations: durationCases,
  'distinct counts': distinctCases,
  'tools and memory': registryCases,
  'who says so': provenanceCases,
  'robots.txt': robotsCases,
  'ingest counts': ingestCountCases,
  'access logs': accessLogCases,
  'the rest': restCases,
}

const caseTimeoutMs = 20_000

export function testStore(engine: string, open: OpenFolder, openNodes: OpenNodes): void {
  testNodes(engine, openNodes)
  let dir: TempDir
  let store: Store
  beforeAll(async () => {
    dir = tempDir('store')
    store = await open(dir.path)
  })
  afterAll(async () => {
    await store.close()
    dir.remove()
  })
  for (const [group, cases] of Object.entries(groups)) {
    describe(`${engine}: ${group}`, () => {
      for (const [name, run] of Object.entries(cases)) {
        test(
          name,
          async () => {
            const org = makeOrg()
            await store.orgs.create({ org, audit: makeAudit(org.id) })
            await run({ store, orgId: org.id, open })
          },
          caseTimeoutMs,
        )
      }
    })
  }
}

function testNodes(engine: string, openNodes: OpenNodes): void {
  describe(`${engine}: two nodes`, () => {
    let dir: TempDir
    let stores: readonly [Store, Store]
    beforeAll(async () => {
      dir = tempDir('nodes')
      stores = await openNodes(dir.path)
    })
    afterAll(async () => {
      for (const store of stores) await store.close()
      dir.remove()
    })
    for (const [name, run] of Object.entries({
      ...nodeCases,
      ...sharedRecordCases,
      ...throttleNodeCases,
      ...accessLogNodeCases,
    })) {
      test(
        name,
        async () => {
          const [store, another] = stores
          const org = makeOrg()
          await store.orgs.create({ org, audit: makeAudit(org.id) })
          await run({ store, another, orgId: org.id })
        },
        caseTimeoutMs,
      )
    }
  })
}
