/** Accepts or refuses the URL somebody gives for a delivery: 400 `url_blocked` for what may never be reached. */
import { AppError } from '../../errors.ts'
import type { Resolve } from './resolve.ts'
import { readTarget, RefusedUrl, type Target } from './destination.ts'

export interface UrlRules {
  resolve: Resolve
  sinkDir: string | null
}

export interface CheckedUrl {
  url: string // as it is stored
  target: Target
}

/**
 * Refuses what can never be a receiver: other schemes, forbidden addresses, `localhost`. No name is looked up here.
 * Otherwise the answer, or the time it takes, would say which names of the inside network exist. A name that leads to
 * a forbidden address is accepted and fails at send, exactly as one that does not exist.
 * `httpOnly`: for deliveries without an endpoint.
 */
export function checkUrl(rules: UrlRules, value: unknown, httpOnly: boolean): CheckedUrl {
  if (value === undefined || value === null) throw wrongBody('url', 'required', 'url is required')
  if (typeof value !== 'string') throw wrongBody('url', 'wrong_type', 'url must be a text')
  let target
  try {
    target = readTarget(value, rules.sinkDir)
  } catch (error) {
    if (error instanceof RefusedUrl) throw blocked(error.message)
    throw error
  }
  if (httpOnly && target.kind !== 'http') throw blocked('its scheme is neither http nor https')
  if (target.kind === 'file') return { url: `file:${target.path}`, target }
  const resolution = rules.resolve.known(target.host)
  if (resolution?.kind === 'refused') throw blocked(resolution.why)
  return { url: value, target }
}

function blocked(why: string): AppError {
  return wrongBody('url', 'url_blocked', `deliveries may not go to this URL: ${why}`, {
    hint: 'An operator opens private ranges with --webhook-allow.',
  })
}

export function wrongBody(
  path: string,
  code: string,
  message: string,
  more: { hint?: string } = {},
): AppError {
  return new AppError('invalid_body', message, { issues: [{ path, code, message }], ...more })
}
