/** Settings → System, for operators: what the clock says, and the button that confirms it after a jump. */
import { Elysia } from 'elysia'
import { requireOperator } from '../../identity/operator.ts'
import { json } from '../../http/response.ts'
import { readQuery } from '../../http/query.ts'
import type { Store } from '../../../db/contract/store.ts'
import type { SignIns } from '../../identity/sign-in/sign-ins.ts'
import type { ClockGuard } from '../../system/clock-guard.ts'
import { clockView, confirmClock } from './clock.ts'

export interface ClockRoutesServices {
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
