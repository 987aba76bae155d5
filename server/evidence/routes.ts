/** GET /api/evidence: the evidence pack in force, for Settings. `sightglass evidence update` replaces it. */
import { Elysia } from 'elysia'
import type { Clock } from '../clock.ts'
import { readQuery } from '../http/request.ts'
import { json } from '../http/response.ts'
import type { SignIns } from '../identity/sign-in/sign-ins.ts'
import type { EvidenceReader } from './evidence.ts'
import { evidenceView } from './view.ts'

export interface EvidenceRoutesServices {
  evidence: EvidenceReader
  evidenceMaxAgeDays: number
  clock: Clock
  signIns: SignIns
}

export function evidenceRoutes({ evidence, evidenceMaxAgeDays, clock, signIns }: EvidenceRoutesServices) {
  return new Elysia().get('/api/evidence', async ({ request }) => {
    await signIns.require(request)
    readQuery(request, {})
    return json(evidenceView(await evidence.current(), clock.now(), evidenceMaxAgeDays))
  })
}
