/** The words for where a delivery and an endpoint stand. */
import type { Attempt, Delivery, DeliveryStatus, Endpoint } from '../../api/webhook-api.ts'

export const statusWords: { [status in DeliveryStatus]: string } = {
  pending: 'pending',
  delivered: 'delivered',
  dead_letter: 'dead letter',
}

export const statusTones: { [status in DeliveryStatus]: string } = {
  pending: 'review',
  delivered: 'allow',
  dead_letter: 'error',
}

export interface Health {
  tone: 'allow' | 'block' | 'error' | 'plain'
  word: string
}

/** How an endpoint does, worst first. */
export function healthOf(endpoint: Endpoint): Health {
  if (endpoint.pausedReason === 'gone') return { tone: 'error', word: 'gone, paused' }
  if (endpoint.pausedReason === 'failing') return { tone: 'error', word: 'failing, paused' }
  if (endpoint.status === 'paused') return { tone: 'plain', word: 'paused' }
  if (endpoint.failingSince !== null) return { tone: 'block', word: 'failing' }
  return endpoint.lastSuccessAt === null && endpoint.delivered === 0
    ? { tone: 'plain', word: 'nothing sent yet' }
    : { tone: 'allow', word: 'healthy' }
}

/** An error is told as `code: what happened`. */
export function errorParts(error: string): { code: string; message: string } {
  const at = error.indexOf(': ')
  return at === -1 ? { code: error, message: '' } : { code: error.slice(0, at), message: error.slice(at + 2) }
}

const advice: { [code: string]: string } = {
  url_blocked:
    'Check the host name of the URL. If it is right, its address is not public: an operator can open it with --webhook-allow.',
  name_unanswered: 'The name servers of this host do not answer. It may come back by itself.',
  timeout: 'The receiver must answer within 15 seconds: have it answer first and work afterwards.',
  redirect: 'Redirects are not followed. Change the URL to where it leads.',
}

/** What the reader can do about a failure, from the newest attempt that failed. */
export function adviceFor(attempt: Attempt | null): string {
  if (attempt === null) return 'Replay it when the receiver is ready.'
  const { code } = errorParts(attempt.error ?? '')
  if (Object.hasOwn(advice, code)) return advice[code] ?? ''
  const status = attempt.status ?? 0
  if (status >= 300 && status < 400) return advice['redirect'] ?? ''
  if (status === 401 || status === 403)
    return 'The receiver refused it. Check that it verifies with the secret of this endpoint.'
  if (status === 404) return 'Nothing is at this address of the receiver. Check the path of the URL.'
  if (status === 410) return 'The receiver says that it is gone for good; its endpoint was paused.'
  if (status >= 500) return 'The receiver failed. Look at its own log at the time of the attempts.'
  return 'Replay it when the receiver is ready.'
}
