/** Sends one request to the appliance, with a timeout. Resolves with the response or the reason of the failure. */
import type { Bytes } from '../platform/platform.ts'
import type { Connection } from './connection.ts'

/** The build compares the version with package.json. */
export const userAgent = 'sightglass-sdk/0.1.0'

export interface Call {
  method: 'GET' | 'POST'
  path: string
  body?: string | Bytes
  headers?: Record<string, string>
  /** Aborts the request, in addition to its timeout. */
  signal?: AbortSignal
}

export type Reply =
  | { kind: 'response'; status: number; headers: Headers; body: unknown }
  | { kind: 'failure'; isTls: boolean; message: string; cause: unknown }

/** Reads the whole response. `body` is undefined unless it is JSON. Never rejects. */
export async function request(connection: Connection, call: Call): Promise<Reply> {
  const { stop, signal } = deadline(connection.requestTimeoutMs, call.signal)
  try {
    const response = await send(connection, call, signal)
    const text = await response.text()
    return { kind: 'response', status: response.status, headers: response.headers, body: parsed(text) }
  } catch (error) {
    return failureOf(error, connection, signal)
  } finally {
    stop()
  }
}

/** Does not follow redirects, because the key must not be sent to another host. */
export function send(connection: Connection, call: Call, signal: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = {
    authorization: `Bearer ${connection.key}`,
    'user-agent': userAgent,
    ...call.headers,
  }
  if (call.body !== undefined) headers['content-type'] = 'application/json'
  return connection.fetch(`${connection.url}${call.path}`, {
    method: call.method,
    headers,
    redirect: 'manual',
    signal,
    ...(call.body === undefined ? {} : { body: call.body }),
  })
}

function deadline(timeoutMs: number, outer?: AbortSignal): { signal: AbortSignal; stop: () => void } {
  const controller = new AbortController()
  const cut = (): void => controller.abort()
  const timer = setTimeout(cut, timeoutMs)
  if (outer?.aborted === true) cut()
  outer?.addEventListener('abort', cut)
  const stop = (): void => {
    clearTimeout(timer)
    outer?.removeEventListener('abort', cut)
  }
  return { signal: controller.signal, stop }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Certificate errors, which a retry does not fix. Node.js sets the code on the cause, Bun on the error. */
const tlsCode =
  /^(ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_(GET|VERIFY)|HOSTNAME_MISMATCH|EPROTO|UNKNOWN_CERT)/

function failureOf(error: unknown, connection: Connection, signal: AbortSignal): Reply {
  const host = new URL(connection.url).host
  const codes = [error, (error as { cause?: unknown })?.cause].map(
    (each) => (each as { code?: unknown })?.code,
  )
  const code = codes.find((each): each is string => typeof each === 'string')
  const isTls = code !== undefined && tlsCode.test(code)
  const what = signal.aborted
    ? 'did not respond in time'
    : isTls
      ? 'failed the TLS check'
      : 'could not be reached'
  return {
    kind: 'failure',
    isTls,
    message: `${host} ${what}${code === undefined ? '' : ` (${code})`}`,
    cause: error,
  }
}
