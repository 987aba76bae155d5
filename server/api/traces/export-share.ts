/** One of the exports that may run at a time, of events and of the audit log, shared fairly. */
import { AppError } from '../../errors.ts'
import { retryAfter } from '../../http/errors.ts'
import type { Share, Shares } from '../../http/shares.ts'

/** Throws 503 when the organization, or who acts for it, has as many as it may. */
export function takeExport(shares: Shares, orgId: string, actor: string): Share {
  const share = shares.take({ orgId, holderId: actor }, 1)
  if (share !== null) return share
  const message = 'As many exports are running as you may have at a time; try again when one has ended.'
  throw new AppError('overloaded', message, { headers: retryAfter() })
}
