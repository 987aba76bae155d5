/** Settings → Backups, for operators: list, create, verify, download and delete. */
import { basename } from 'node:path'
import { Elysia } from 'elysia'
import { requireOperator } from '../../identity/permissions.ts'
import type { SignIns } from '../../identity/sign-in/sign-ins.ts'
import { json } from '../../http/response.ts'
import { contextOf, readQuery } from '../../http/request.ts'
import type { Backups } from './backups.ts'

interface BackupRouteServices {
  backups: Backups
  signIns: SignIns
}

export function backupRoutes({ backups, signIns }: BackupRouteServices) {
  const operator = async (request: Request): Promise<string> => {
    const actor = await requireOperator(signIns, request)
    readQuery(request, {})
    return actor
  }
  return new Elysia()
    .get('/api/backups', async ({ request }) => {
      await operator(request)
      return json(await backups.list())
    })
    .post(
      '/api/backups',
      async ({ request }) => {
        backups.start('manual', await operator(request))
        return json(await backups.list(), 202)
      },
      { parse: 'none' },
    )
    .post(
      '/api/backups/:name/verify',
      async ({ request, params }) => {
        await operator(request)
        await backups.check(params.name)
        return json(await backups.list(), 202)
      },
      { parse: 'none' },
    )
    .delete(
      '/api/backups/:name',
      async ({ request, params }) => {
        await backups.remove(params.name, await operator(request))
        return json(await backups.list())
      },
      { parse: 'none' },
    )
    .get('/api/backups/:name/file', async ({ request, params }) => {
      const path = await backups.handOut(params.name, await operator(request))
      contextOf(request).keepOpen() // a slow client may take long
      return new Response(Bun.file(path), {
        headers: {
          'content-type': 'application/octet-stream',
          'content-disposition': `attachment; filename="${basename(path)}"`,
        },
      })
    })
}
