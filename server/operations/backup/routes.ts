/** Settings → Backups, for operators: list, create, verify, download and delete. */
import type { FileHandle } from 'node:fs/promises'
import { basename } from 'node:path'
import { Elysia } from 'elysia'
import { openRegularFile } from '../../../db/rules/regular-files.ts'
import { requireOperator } from '../../identity/permissions.ts'
import type { SignIns } from '../../identity/sign-in/sign-ins.ts'
import { json, streamText } from '../../http/response.ts'
import { contextOf, readQuery } from '../../http/request.ts'
import { limits } from '../../limits.ts'
import type { Backups } from './backups.ts'

interface BackupRouteServices {
  backups: Backups
  signIns: SignIns
}

const partBytes = 256 * 1024

/** Not by the runtime's own sending of files, which nothing could end when the operator loses the role. */
async function* partsOf(file: FileHandle): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for (;;) {
    const { buffer, bytesRead } = await file.read(new Uint8Array(partBytes), 0, partBytes)
    if (bytesRead === 0) return
    yield buffer.subarray(0, bytesRead)
  }
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
      const file = await openRegularFile(path, { follows: false })
      const { size } = await file.stat()
      const ended = () => void file.close()
      const body = streamText({ parts: partsOf(file), stallMs: limits.exportStallMs, ended })
      return new Response(body, {
        headers: {
          'content-type': 'application/octet-stream',
          'content-length': String(size),
          'content-disposition': `attachment; filename="${basename(path)}"`,
        },
      })
    })
}
