/** GET /api/doctor, for operators: the checks of `sightglass doctor`, run inside the server. */
import { Elysia } from 'elysia'
import { requireOperator } from '../../identity/permissions.ts'
import { json } from '../../http/response.ts'
import { readQuery } from '../../http/request.ts'
import type { SignIns } from '../../identity/sign-in/sign-ins.ts'
import type { Clock } from '../../clock.ts'
import { diagnose } from './diagnose.ts'
import { serverState, stateChecks, type ServerStateServices } from './server-checks.ts'

interface DoctorRoutesServices extends ServerStateServices {
  clock: Clock
  location: string
  signIns: SignIns
}

export function doctorRoutes(services: DoctorRoutesServices) {
  return new Elysia().get('/api/doctor', async ({ request }) => {
    await requireOperator(services.signIns, request)
    readQuery(request, {})
    const url = new URL(request.url).origin
    const live = stateChecks(await serverState(services, url))
    return json(
      await diagnose({
        config: services.diagnosed,
        location: services.location,
        now: services.clock.now(),
        live,
        url,
      }),
    )
  })
}
