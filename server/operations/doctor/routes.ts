/** GET /api/doctor, for operators: what `sightglass doctor` says, from inside the running server. */
import { Elysia } from 'elysia'
import { requireOperator } from '../../identity/operator.ts'
import { json } from '../../http/response.ts'
import { readQuery } from '../../http/query.ts'
import type { Parts } from '../../services.ts'
import { diagnose } from './diagnose.ts'
import { stateChecks } from './server-checks.ts'
import { serverState } from './server-state.ts'

export function doctorRoutes(parts: Parts) {
  return new Elysia().get('/api/doctor', async ({ request }) => {
    await requireOperator(parts.signIns, request)
    readQuery(request, {})
    const url = new URL(request.url).origin
    const live = stateChecks(await serverState(parts, url))
    return json(await diagnose({ config: parts.diagnosed, now: parts.clock.now(), live, url }))
  })
}
