/** A server with too many bodies in flight refuses a small one without reading it: reading thousands costs too much. */
import { expect, test } from 'bun:test'
import type { AppError } from '../../server/errors.ts'
import { requireBodyCapacity } from '../../server/http/body.ts'
import { setContext, type RequestContext } from '../../server/http/request.ts'
import { makeShares } from '../../server/http/shares.ts'
import { limits } from '../../server/limits.ts'

/** How many parts of a body of this length were read before it was refused, and the headers of the refusal. */
async function refused(bytes: number): Promise<{ read: number; headers: { [name: string]: string } }> {
  let read = 0
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        read++
        if (read <= 3) controller.enqueue(new Uint8Array(100))
        else controller.close()
      },
    },
    { highWaterMark: 0 },
  )
  const request = new Request('http://localhost/', { method: 'POST', body })
  const inFlight = { bodies: makeShares(1_000), responses: makeShares(0) }
  const sender = () => ({ address: '127.0.0.1', secure: false })
  setContext(request, { sender, inFlight } as RequestContext)
  const error = (await requireBodyCapacity(request, bytes)?.catch((thrown: AppError) => thrown)) as AppError
  expect(error).toMatchObject({ code: 'overloaded' })
  return { read, headers: error.details.headers ?? {} }
}

test('a small body is left to the parser, and its connection stays open', async () => {
  for (const bytes of [1_001, limits.unreadBodyBytesMax]) {
    const { read, headers } = await refused(bytes)
    expect([read, 'connection' in headers, Number(headers['retry-after']) >= 1]).toEqual([0, false, true])
  }
})

test('a large body is discarded first', async () => {
  expect((await refused(limits.unreadBodyBytesMax + 1)).read).toBe(4)
})
