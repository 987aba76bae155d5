/** Posts events to the public ingest endpoint for `demo --live`, and classifies the response. */

export interface PostTarget {
  ingestUrl: string // without a slash at the end
  key: string
}

type PostOutcome =
  | { kind: 'stored'; accepted: number; deduped: number }
  | { kind: 'retry'; afterMs: number; why: string } // safe, because ingest is idempotent
  | { kind: 'rejected'; message: string }

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
    const reason =
      error instanceof Error && error.name === 'TimeoutError' ? 'no response within 15 s' : 'no connection'
    return { kind: 'retry', afterMs: 2_000, why: reason }
  }
  const body = parsed(text)
  if (response.ok)
    return { kind: 'stored', accepted: Number(body['accepted']), deduped: Number(body['deduped']) }
  if (response.status === 429 || response.status >= 500) {
    return {
      kind: 'retry',
      afterMs: retryAfterMs(response.headers.get('retry-after')),
      why: `status ${response.status}`,
    }
  }
  const { message, hint } = body
  return {
    kind: 'rejected',
    message: [message ?? `status ${response.status}`, hint].filter(Boolean).join(' '),
  }
}

/** `Retry-After` in seconds, at most 60. Missing or invalid values count as 2 s. */
export function retryAfterMs(header: string | null): number {
  const seconds = header !== null && /^\d{1,6}$/.test(header.trim()) ? Number(header) : 2
  return Math.min(seconds * 1_000, retryAfterMsMax)
}

function parsed(text: string): { [field: string]: unknown } {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}
