/** The labels and advice for the states of deliveries and endpoints. */
import type { Attempt, Delivery, DeliveryStatus, Endpoint } from '../../api/webhook-api.ts'
import { waitingSentence } from '../../../server/text/waiting.ts'
import { clockTime, shortTime } from '../../text/format.ts'

export const statusLabels: { [status in DeliveryStatus]: string } = {
  pending: 'pending',
  delivered: 'delivered',
  dead_letter: 'dead letter',
}

export const statusTones: { [status in DeliveryStatus]: string } = {
  pending: 'review',
  delivered: 'allow',
  dead_letter: 'error',
}

const soonMs = 12 * 3_600_000

/** Why a pending delivery waits, such as "Retries at 14:03"; empty for one that has ended. */
export function waitLabel({ waitingFor }: Pick<Delivery, 'waitingFor'>, nowMs: number): string {
  if (waitingFor === null) return ''
  return waitingSentence(waitingFor, (iso) => {
    const ms = Date.parse(iso)
    return Math.abs(ms - nowMs) < soonMs ? clockTime(ms) : shortTime(ms)
  })
}

interface Health {
  tone: 'allow' | 'block' | 'error' | 'plain'
  label: string
}

/** The health of an endpoint; the worst state wins. */
export function healthOf(endpoint: Endpoint): Health {
  if (endpoint.pausedReason === 'gone') return { tone: 'error', label: 'paused: gone' }
  if (endpoint.pausedReason === 'failing') return { tone: 'error', label: 'paused: failing' }
  if (endpoint.status === 'paused') return { tone: 'plain', label: 'paused' }
  if (endpoint.failingSince !== null) return { tone: 'block', label: 'failing' }
  return endpoint.lastSuccessAt === null && endpoint.delivered === 0
    ? { tone: 'plain', label: 'no deliveries yet' }
    : { tone: 'allow', label: 'healthy' }
}

/** Splits an error of the form `code: message`. */
export function errorParts(error: string): { code: string; message: string } {
  const separatorIndex = error.indexOf(': ')
  return separatorIndex === -1
    ? { code: error, message: '' }
    : { code: error.slice(0, separatorIndex), message: error.slice(separatorIndex + 2) }
}

const advice: { [code: string]: string } = {
  url_blocked:
    'Check the host name of the URL. If it is correct, its address is not public. An operator can allow it with --webhook-allow.',
  name_unanswered: 'The DNS servers of this host do not respond. This may be temporary.',
  timeout: 'The receiver must respond within 15 s. Respond first and process the message afterwards.',
  redirect: 'Redirects are not followed. Change the URL to the redirect target.',
}

/** Advice for a failed delivery, from its newest failed attempt. */
export function adviceFor(attempt: Attempt | null): string {
  if (attempt === null) return 'Replay the delivery when the receiver is ready.'
  const { code } = errorParts(attempt.error ?? '')
  if (Object.hasOwn(advice, code)) return advice[code] ?? ''
  const status = attempt.status ?? 0
  if (status >= 300 && status < 400) return advice['redirect'] ?? ''
  if (status === 401 || status === 403)
    return 'The receiver rejected the request. Check that it verifies with the secret of this endpoint.'
  if (status === 404) return 'The receiver has nothing at this URL. Check its path.'
  if (status === 410) return 'The receiver reported that it is gone, so Sightglass paused the endpoint.'
  if (status >= 500) return 'The receiver failed. Check its log at the time of the attempts.'
  return 'Replay the delivery when the receiver is ready.'
}
