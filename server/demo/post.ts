/** Posts events to the public ingest endpoint as a customer's backend does: patient with a busy or absent server. */

export interface PostTarget {
  ingestUrl: string // without a slash at the end
  key: string
}

export type PostOutcome =
  | { kind: 'taken'; accepted: number; deduped: number }
  | { kind: 'again'; afterMs: number; why: string } // the same events may be sent again: ingest is idempotent
  | { kind: 'refused'; message: string }

const timeoutMs = 15_000
const retryAfterMsMax = 60_000

export async function postEvents({ ingestUrl, key }: PostTarget, events: unknown[]): Promise<PostOutcome> {
  let response: Response
  let text: string
  try {
    response = await fetch(`${ingestUrl}/v1/sdk/events`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ events }),
      signal: AbortSignal.timeout(timeoutMs),
    })
    text = await response.text()
  } catch (error) {
    const why =
      error instanceof Error && error.name === 'TimeoutError' ? 'no answer in 15 s' : 'no connection'
    return { kind: 'again', afterMs: 2_000, why }
  }
  const body = parsed(text)
  if (response.ok)
    return { kind: 'taken', accepted: Number(body['accepted']), deduped: Number(body['deduped']) }
  if (response.status === 429 || response.status >= 500) {
    return {
      kind: 'again',
      afterMs: retryAfterMs(response.headers.get('retry-after')),
      why: `answer ${response.status}`,
    }
  }
  const { message, hint } = body
  return {
    kind: 'refused',
    message: [message ?? `answer ${response.status}`, hint].filter(Boolean).join(' '),
  }
}

/** `Retry-After` in seconds; a missing or strange one is two seconds. */
export function retryAfterMs(header: string | null): number {
  const seconds = header !== null && /^\d{1,6}$/.test(header.trim()) ? Number(header) : 2
  return Math.min(seconds * 1_000, retryAfterMsMax)
}

function parsed(text: string): { [member: string]: unknown } {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}
