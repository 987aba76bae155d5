/** /healthz: the process responds. /readyz: it can work, or which checks fail. Also nodes and clock, for operators. */
import { Elysia } from 'elysia'
import { AppError } from '../../errors.ts'
import { json } from '../../http/response.ts'
import { readQuery } from '../../http/request.ts'
import { requireOperator } from '../../identity/permissions.ts'
import { clockView, confirmClock } from './clock.ts'
import { nodesView } from './nodes.ts'
import { readiness, type ReadinessServices } from './readiness.ts'
import type { Store } from '../../../db/contract/store.ts'
import type { SignIns } from '../../identity/sign-in/sign-ins.ts'
import type { ClockGuard } from '../../system/clock-guard.ts'
import type { SharedNode } from '../../system/shared-node.ts'

interface HealthRoutesServices extends ReadinessServices {
  version: string
}

export function healthRoutes(services: HealthRoutesServices) {
  return (
    new Elysia()
      // Both ignore a query: supervisors add a time or a name, and an error would end a healthy process.
      .get('/healthz', () => json({ status: 'ok', version: services.version }))
      .get('/readyz', async () => {
        const checks = await readiness(services)
        if (checks.every((check) => check.ok)) return json({ status: 'ready', checks })
        const failing = checks.filter((check) => !check.ok)
        throw new AppError('not_ready', failing.map((check) => `${check.name}: ${check.detail}`).join('; '), {
          members: { checks },
        })
      })
  )
}

/** Settings → System, for operators: the nodes, the state of the clock, and its confirmation after a jump. */
interface SystemRoutesServices {
  store: Store
  node: SharedNode | null
  clockGuard: ClockGuard
  signIns: SignIns
}

export function systemRoutes(services: SystemRoutesServices) {
  const operator = async (request: Request): Promise<string> => {
    const actor = await requireOperator(services.signIns, request)
    readQuery(request, {})
    return actor
  }
  return new Elysia()
    .get('/api/nodes', async ({ request }) => {
      await operator(request)
      return json(await nodesView(services))
    })
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
