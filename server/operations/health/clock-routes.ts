/** Settings → System, for operators: what the clock says, and the button that confirms it after a jump. */
import { Elysia } from 'elysia'
import { requireOperator } from '../../identity/operator.ts'
import { json } from '../../http/response.ts'
import { readQuery } from '../../http/query.ts'
import type { Parts } from '../../services.ts'
import { clockView, confirmClock } from './clock.ts'

export function clockRoutes(parts: Parts) {
  const operator = async (request: Request): Promise<string> => {
    const actor = await requireOperator(parts.signIns, request)
    readQuery(request, {})
    return actor
  }
  return new Elysia()
    .get('/api/clock', async ({ request }) => {
      await operator(request)
      return json(clockView(parts.clockGuard))
    })
    .post(
      '/api/clock/confirm',
      async ({ request }) => json(await confirmClock(parts, await operator(request))),
      { parse: 'none' },
    )
}
