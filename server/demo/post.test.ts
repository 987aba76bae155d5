/** Posting like a backend: what counts as taken, what is tried again and when, what ends it. */
import { expect, test } from 'bun:test'
import { postEvents, retryAfterMs } from './post.ts'

async function against(answer: () => Response) {
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: answer })
  try {
    return await postEvents({ ingestUrl: `http://127.0.0.1:${server.port}`, key: 'k' }, [{}])
  } finally {
    await server.stop(true)
  }
}

test('2xx is taken, with its counts', async () => {
  const outcome = await against(() => Response.json({ ok: true, accepted: 1, deduped: 2 }, { status: 202 }))
  expect(outcome).toEqual({ kind: 'taken', accepted: 1, deduped: 2 })
})

test.each([
  [429, '7', 7_000],
  [503, '1', 1_000],
  [503, null, 2_000],
  [507, 'soon', 2_000],
])('%i with Retry-After %p is tried again', async (status, header, afterMs) => {
  const headers: Record<string, string> = header === null ? {} : { 'retry-after': header }
  expect(await against(() => new Response('busy', { status, headers }))).toMatchObject({
    kind: 'again',
    afterMs,
  })
})

test('401 and 403 end it with what the server said', async () => {
  const said = { error: 'unauthorized', message: 'The key is revoked.', hint: 'Mint another.' }
  expect(await against(() => Response.json(said, { status: 401 }))).toEqual({
    kind: 'refused',
    message: 'The key is revoked. Mint another.',
  })
  expect(await against(() => new Response('<html>', { status: 403 }))).toEqual({
    kind: 'refused',
    message: 'answer 403',
  })
})

test('nobody there is tried again', async () => {
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() })
  const ingestUrl = `http://127.0.0.1:${server.port}`
  await server.stop(true)
  expect(await postEvents({ ingestUrl, key: 'k' }, [{}])).toMatchObject({
    kind: 'again',
    why: 'no connection',
  })
})

test('a wait is at most a minute', () => {
  expect(retryAfterMs('3600')).toBe(60_000)
  expect(retryAfterMs('-1')).toBe(2_000)
})
