/** POST /api/reports makes a signed report for the dashboard; GET /docs/verify-report verifies one in a browser. */
import { Elysia } from 'elysia'
import { auditEntry } from '../audit/entry.ts'
import type { Clock } from '../clock.ts'
import { periodOf, periodParameters } from '../counts/period.ts'
import { readQuery } from '../http/request.ts'
import type { SigningKey } from '../audit/signing.ts'
import type { SignIns } from '../identity/sign-in/sign-ins.ts'
import type { Store } from '../../db/contract/store.ts'
import { signReport } from './proof.ts'
import { draftReport } from './report.ts'
import { verifierPage, verifierPolicy } from './verifier.ts'

interface ReportRoutesServices {
  store: Store
  clock: Clock
  signIns: SignIns
  auditKey: SigningKey
}

export function reportRoutes({ store, clock, signIns, auditKey }: ReportRoutesServices) {
  return new Elysia()
    .post(
      '/api/reports',
      async ({ request }) => {
        const { org, account } = await signIns.require(request)
        const period = await periodOf(store, org.id, readQuery(request, periodParameters), clock.now())
        const { body, facts, fileName } = await draftReport(store, org, period, auditKey.publicKey)
        const { since, until, events } = facts
        const act = { action: 'report.made', target: org.id, metadata: { since, until, events } }
        await store.audit.append(auditEntry({ orgId: org.id, actor: `user:${account.id}` }, act, clock.now()))
        return new Response(signReport(body, facts, auditKey), {
          headers: {
            'content-type': 'text/html; charset=utf-8',
            'content-disposition': `attachment; filename="${fileName}"`,
            'cache-control': 'no-store',
          },
        })
      },
      { parse: 'none' },
    )
    .get('/docs/verify-report', ({ request }) => {
      readQuery(request, {})
      return new Response(verifierPage(), {
        headers: {
          'content-type': 'text/html; charset=utf-8',
          'cache-control': 'no-cache',
          'content-security-policy': verifierPolicy,
        },
      })
    })
}
