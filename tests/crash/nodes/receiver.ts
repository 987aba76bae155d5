/** A webhook receiver in a process of its own, which is slow or fails now and then, and reports every attempt. */
import { appendFileSync } from 'node:fs'

/** One attempt as the receiver saw it. Times are from `epochMs`. */
export interface Attempt {
  id: string
  body: string
  startMs: number
  endMs: number
  status: number
}

/** Since 1970. No fault sets it, and two processes can compare theirs. */
export const epochMs = () => performance.timeOrigin + performance.now()

/** By the delivery's id, so that a repeated attempt of a failed one succeeds. */
const requestCounts = new Map<string, number>()

function serve(reports: string): void {
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 60,
    async fetch(request) {
      if (request.method === 'GET') return new Response('') // somebody asks whether it runs
      const startMs = epochMs()
      const id = request.headers.get('webhook-id') ?? ''
      const body = await request.text()
      const times = (requestCounts.get(id) ?? 0) + 1
      requestCounts.set(id, times)
      const draw = Bun.hash.crc32(id) % 20
      await Bun.sleep(draw === 0 ? 1_500 : draw * 5)
      const status = draw === 1 && times === 1 ? 500 : 200
      const attempt: Attempt = { id, body, startMs, endMs: epochMs(), status }
      appendFileSync(reports, `${JSON.stringify(attempt)}\n`)
      return new Response('', { status })
    },
  })
  console.log(`listening on ${server.port}`)
}

if (import.meta.main) serve(process.argv[2]!)
