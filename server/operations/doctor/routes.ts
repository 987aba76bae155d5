/** GET /api/doctor, for operators: the checks of `sightglass doctor`, run inside the server. */
import { Elysia } from 'elysia'
import { requireOperator } from '../../identity/permissions.ts'
import { json } from '../../http/response.ts'
import { readQuery } from '../../http/request.ts'
import type { Store } from '../../../db/contract/store.ts'
import type { SignIns } from '../../identity/sign-in/sign-ins.ts'
import type { Clock } from '../../clock.ts'
import type { ClockGuard } from '../../system/clock-guard.ts'
import type { Diagnosed } from './options.ts'
import type { DiskWatch } from '../health/disk.ts'
import type { MemoryWatch } from '../health/memory.ts'
import type { Jobs } from '../../system/scheduler.ts'
import { diagnose } from './diagnose.ts'
import { serverState, stateChecks } from './server-checks.ts'

export interface DoctorRoutesServices {
  store: Store
  clock: Clock
  clockGuard: ClockGuard
  version: string
  signIns: SignIns
  disk: DiskWatch
  memory: MemoryWatch
  jobs: Pick<Jobs, 'late' | 'report'>
  diagnosed: Diagnosed
  state: { stopping: boolean; storeFailed: string | null }
}

export function doctorRoutes(services: DoctorRoutesServices) {
  return new Elysia().get('/api/doctor', async ({ request }) => {
    await requireOperator(services.signIns, request)
    readQuery(request, {})
    const url = new URL(request.url).origin
    const live = stateChecks(await serverState(services, url))
    return json(await diagnose({ config: services.diagnosed, now: services.clock.now(), live, url }))
  })
}
