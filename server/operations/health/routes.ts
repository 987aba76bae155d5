/** /healthz: the process responds. /readyz: it can work, or which checks fail. Also the clock, for operators. */
import { Elysia } from 'elysia'
import { AppError } from '../../errors.ts'
import { json } from '../../http/response.ts'
import { readQuery } from '../../http/request.ts'
import { limits } from '../../limits.ts'
import { sizeText } from '../../text/text.ts'
import { requireOperator } from '../../identity/permissions.ts'
import { clockView, confirmClock } from './clock.ts'
import type { Store } from '../../../db/contract/store.ts'
import type { DiskWatch } from './disk.ts'
import type { MemoryWatch } from './memory.ts'
import type { Jobs } from '../../system/scheduler.ts'
import type { SignIns } from '../../identity/sign-in/sign-ins.ts'
import type { ClockGuard } from '../../system/clock-guard.ts'

export interface HealthRoutesServices {
  store: Store
  version: string
  disk: DiskWatch
  memory: MemoryWatch
  jobs: Pick<Jobs, 'late' | 'report'>
  state: { stopping: boolean; storeFailed: string | null }
}

export interface Check {
  name: 'store' | 'disk' | 'queue' | 'memory' | 'jobs'
  ok: boolean
  detail: string
}

export function healthRoutes(services: HealthRoutesServices) {
  return new Elysia()
    .get('/healthz', ({ request }) => {
      readQuery(request, {})
      return json({ status: 'ok', version: services.version })
    })
    .get('/readyz', async ({ request }) => {
      readQuery(request, {})
      const checks = await readiness(services)
      if (checks.every((check) => check.ok)) return json({ status: 'ready', checks })
      const failing = checks.filter((check) => !check.ok)
      throw new AppError('not_ready', failing.map((check) => `${check.name}: ${check.detail}`).join('; '), {
        members: { checks },
      })
    })
}

/** The checks of contract §1, each with a sentence for operators. */
export async function readiness({
  store,
  disk,
  memory,
  jobs,
  state,
}: HealthRoutesServices): Promise<Check[]> {
  const pressure = store.events.pressure()
  const late = jobs.late()
  const queueFull = pressure.queuedBytes > limits.queueBytesMax || pressure.oldestMs > limits.queueAgeMsMax
  const failed =
    state.storeFailed ??
    (await store.health().then(
      () => null,
      () => 'the store does not respond',
    ))
  return [
    { name: 'store', ok: failed === null, detail: failed ?? 'writable' },
    { name: 'disk', ok: !disk.full() && !pressure.full, detail: `${sizeText(disk.freeBytes())} free` },
    {
      name: 'queue',
      ok: !queueFull,
      detail: `${sizeText(pressure.queuedBytes)} queued, the oldest for ${Math.round(pressure.oldestMs)} ms`,
    },
    {
      name: 'memory',
      ok: memory.pressure() === 'none',
      detail: `${sizeText(memory.usedBytes())} of ${sizeText(memory.limitBytes)} used`,
    },
    {
      name: 'jobs',
      ok: late.length === 0,
      detail: late.length === 0 ? 'on time' : `late: ${late.join(', ')}`,
    },
  ]
}

/** Settings → System, for operators: the state of the clock, and its confirmation after a jump. */
interface ClockRoutesServices {
  store: Store
  clockGuard: ClockGuard
  signIns: SignIns
}

export function clockRoutes(services: ClockRoutesServices) {
  const operator = async (request: Request): Promise<string> => {
    const actor = await requireOperator(services.signIns, request)
    readQuery(request, {})
    return actor
  }
  return new Elysia()
    .get('/api/clock', async ({ request }) => {
      await operator(request)
      return json(clockView(services.clockGuard))
    })
    .post(
      '/api/clock/confirm',
      async ({ request }) => json(await confirmClock(services, await operator(request))),
      { parse: 'none' },
    )
}
