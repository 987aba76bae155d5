/** Posting demo events: which responses count as stored, which are retried and when, and which end the demo. */
import { expect, test } from 'bun:test'
import { postEvents, retryAfterMs } from './post.ts'

async function postTo(answer: () => Response) {
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: answer })
  try {
    return await postEvents({ ingestUrl: `http://127.0.0.1:${server.port}`, key: 'k' }, [{}])
  } finally {
    await server.stop(true)
  }
}

test('2xx counts as stored', async () => {
  const outcome = await postTo(() => Response.json({ ok: true, accepted: 1, deduped: 2 }, { status: 202 }))
  expect(outcome).toEqual({ kind: 'stored', accepted: 1, deduped: 2 })
})

test.each([
  [429, '7', 7_000],
  [503, '1', 1_000],
  [503, null, 2_000],
  [507, 'soon', 2_000],
])('%i with Retry-After %p is retried', async (status, header, afterMs) => {
  const headers: Record<string, string> = header === null ? {} : { 'retry-after': header }
  expect(await postTo(() => new Response('busy', { status, headers }))).toMatchObject({
    kind: 'retry',
    afterMs,
  })
})

test('401 and 403 end the demo with the message of the server', async () => {
  const errorBody = { error: 'unauthorized', message: 'The key is revoked.', hint: 'Mint another.' }
  expect(await postTo(() => Response.json(errorBody, { status: 401 }))).toEqual({
    kind: 'rejected',
    message: 'The key is revoked. Mint another.',
  })
  expect(await postTo(() => new Response('<html>', { status: 403 }))).toEqual({
    kind: 'rejected',
    message: 'status 403',
  })
})

test('a refused connection is retried', async () => {
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() })
  const ingestUrl = `http://127.0.0.1:${server.port}`
  await server.stop(true)
  expect(await postEvents({ ingestUrl, key: 'k' }, [{}])).toMatchObject({
    kind: 'retry',
    why: 'no connection',
  })
})

test('a wait is at most 60 s', () => {
  expect(retryAfterMs('3600')).toBe(60_000)
  expect(retryAfterMs('-1')).toBe(2_000)
})
